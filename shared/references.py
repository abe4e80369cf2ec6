"""References in a payload to results of other tasks: how they are written, and which of them are wrong.

They are replaced in Postgres, by `shared/store/sql/workflows/resolve_input.sql`, when the task is claimed.
"""

import re
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from windlass.shared.suggestions import listed

Place = tuple[int | str, ...]

POINTER = re.compile(r"(/([^~/]|~[01])*)*\Z")

FROM, TEXT, LITERAL, ITEM, INDEX = "$from", "$text", "$literal", "$item", "$index"

BESIDE = {FROM: {"path", "default"}, ITEM: {"path", "default"}, TEXT: set(), LITERAL: set(), INDEX: set()}
"""What else may stand in each."""


class Reference(NamedTuple):
    """One of them, and where in the payload it stands."""

    place: Place
    kind: str
    name: str | None = None


class Misplaced(NamedTuple):
    """What is wrong with one."""

    place: Place
    detail: str


def kind_of(value: Any) -> str | None:
    """Which reference an object is, if it is one."""
    return next((kind for kind in BESIDE if kind in value), None) if isinstance(value, dict) else None


def references_in(value: Any, place: Place = ()) -> Iterator[Reference]:
    """All of them, those within a text after it; what is literal is not looked into."""
    kind = kind_of(value)
    if kind is not None:
        name = value.get(FROM)
        yield Reference(place, kind, name if isinstance(name, str) else None)
        if kind == TEXT and isinstance(value[TEXT], list):
            for number, piece in enumerate(value[TEXT]):
                yield from references_in(piece, (*place, TEXT, number))
    elif isinstance(value, dict):
        for key, below in value.items():
            if isinstance(below, dict | list):
                yield from references_in(below, (*place, key))
    elif isinstance(value, list):
        for number, below in enumerate(value):
            if isinstance(below, dict | list):
                yield from references_in(below, (*place, number))


def wrong_references(
    value: Any, names: Collection[str], *, of_an_element: bool = False, place: Place = ()
) -> Iterator[Misplaced]:
    """`names` are what may be referred to; `$item` and `$index` mean something in one for each alone."""
    kind = kind_of(value)
    if kind is not None:
        yield from _wrong_with(value, kind, names, of_an_element=of_an_element, place=place)
    elif isinstance(value, dict):
        for key, below in value.items():
            if isinstance(below, dict | list):
                yield from wrong_references(below, names, of_an_element=of_an_element, place=(*place, key))
    elif isinstance(value, list):
        for number, below in enumerate(value):
            if isinstance(below, dict | list):
                yield from wrong_references(below, names, of_an_element=of_an_element, place=(*place, number))


def _wrong_with(
    value: dict[str, Any], kind: str, names: Collection[str], *, of_an_element: bool, place: Place
) -> Iterator[Misplaced]:
    for other in value.keys() - {kind} - BESIDE[kind]:
        yield Misplaced(
            (*place, other), f"beside `{kind}` there is no such field; write `$literal` around what is none"
        )
    said, path = value[kind], value.get("path", "")
    if "path" in BESIDE[kind] and not (isinstance(path, str) and POINTER.match(path)):
        yield Misplaced((*place, "path"), "must be a JSON pointer, like /summary or /parts/0")
    if kind == FROM and (not isinstance(said, str) or said not in names):
        known = listed(names) or "nothing"
        yield Misplaced((*place, FROM), f"is not among what the task depends on ({known})")
    if kind in {ITEM, INDEX}:
        if said is not True:
            yield Misplaced((*place, kind), "must be true")
        if not of_an_element:
            yield Misplaced(place, f"`{kind}` means something in a task with `for_each` alone")
    if kind == TEXT:
        yield from _wrong_in_text(said, names, of_an_element=of_an_element, place=(*place, TEXT))


def _wrong_in_text(pieces: Any, names: Collection[str], *, of_an_element: bool, place: Place) -> Iterator[Misplaced]:
    if not isinstance(pieces, list):
        yield Misplaced(place, "must be a list of texts and references")
        return
    for number, piece in enumerate(pieces):
        if kind_of(piece) is not None:
            yield from wrong_references(piece, names, of_an_element=of_an_element, place=(*place, number))
        elif not isinstance(piece, str):
            yield Misplaced((*place, number), "must be a text or a reference")


def is_at_or_under(place: Place, references: Collection[Place]) -> bool:
    """Whether what stands there is not known before the task is claimed: `references` are a set of their places."""
    return any(place[:length] in references for length in range(len(place) + 1))


def holds_one_at(pointer: str, references: Collection[Reference]) -> bool:
    """Whether the value that a JSON pointer means is a reference, or within or around one."""
    wanted = tuple(part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:])
    return any(tuple(map(str, each.place))[: len(wanted)] == wanted[: len(each.place)] for each in references)
