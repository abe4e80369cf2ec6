"""A payload that refers to results: what may be referred to, and where nothing may."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from windlass.shared.references import (
    FROM,
    Place,
    Reference,
    holds_one_at,
    kind_of,
    references_in,
    wrong_references,
)
from windlass.shared.submission.refusal import Refused, Wrong, pointer_to, refusal

LOOKED_AT = {
    "agent": ("/subagent_type",),
    "media": ("/action", "/workflow_run_id", "/interaction_id"),
    "probe": ("/outcome", "/error_type"),
}
"""By these it is decided, when a task is submitted, what it may do and how it is found: no result can stand there."""


MOST_REFERENCES = 2000
"""Each is looked up in a result of up to 5 MB when the task is claimed: so many take Postgres about two seconds."""


@dataclass(frozen=True)
class Refers:
    """What a payload may refer to: other tasks by their names, and, in one for each, its element."""

    names: frozenset[str]
    of_an_element: bool = False


def find_references(payload: dict[str, Any], refers: Refers, actor: str, below: str) -> Sequence[Reference]:
    """Raises Refused with the first things that are wrong with them."""
    references = list(islice(references_in(payload), MOST_REFERENCES + 1))
    if not references:
        return ()
    if len(references) > MOST_REFERENCES:
        detail = f"has more than {MOST_REFERENCES:,} references"
        raise refusal(below, "invalid-reference", detail)
    wrong = Refused("invalid-reference", _wrong_with(payload, references, refers, actor, below))
    if wrong.wrong:
        raise wrong
    return references


def _wrong_with(
    payload: dict[str, Any], references: Sequence[Reference], refers: Refers, actor: str, below: str
) -> Iterator[Wrong]:
    for each in wrong_references(payload, refers.names, of_an_element=refers.of_an_element):
        yield Wrong(pointer_to(each.place, below), each.detail)
    for pointer in LOOKED_AT.get(actor, ()):
        if holds_one_at(pointer, references):
            detail = "must be said outright: what the task may do is decided by it when it is submitted"
            yield Wrong(f"{below}{pointer}", detail)
    if kind_of(payload) is not None:
        yield Wrong(below, "the payload itself is an object; references stand in its fields")


def refuse_a_key_by_reference(
    pointers: Sequence[str], references: Collection[Reference], below: str, *, of_an_element: bool
) -> None:
    """The tasks of a `for_each` are made when the list is known, and their keys with them."""
    unknown = [each for each in references if not (of_an_element and each.kind != FROM)]
    for pointer in pointers:
        if holds_one_at(pointer, unknown):
            detail = (
                "is the task's concurrency key, which has to be known when the task is made; a result of another task "
                "cannot stand here"
            )
            raise refusal(f"{below}{pointer}", "invalid-reference", detail)


def without_references(payload: dict[str, Any], references: Collection[Reference]) -> dict[str, Any]:
    """What is known of it already: for who looks at it before it is claimed."""
    hidden = {each.place for each in references}
    pruned: dict[str, Any] = _pruned(payload, hidden, ())
    return pruned


def _pruned(value: Any, hidden: Collection[Place], place: Place) -> Any:
    if isinstance(value, dict):
        return {
            key: _pruned(below, hidden, (*place, key)) for key, below in value.items() if (*place, key) not in hidden
        }
    if isinstance(value, list):
        kept = [(number, each) for number, each in enumerate(value) if (*place, number) not in hidden]
        return [_pruned(each, hidden, (*place, number)) for number, each in kept]
    return value
