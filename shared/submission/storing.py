"""What Postgres cannot keep, and nobody means to send: told with its place, and not mended."""

from collections.abc import Iterable
from typing import Any, NamedTuple

from windlass.shared.settings import Settings
from windlass.shared.submission.refusal import Refused, pointer_to, refusal

NUL, TOO_DEEP, TOO_LARGE = "nul-character", "nested-too-deep", "number-too-large"

LEAST_INTEGER, GREATEST_INTEGER = -(2**63), 2**64 - 1


class Unstorable(NamedTuple):
    """What cannot be stored, and where: the names that lead to it, the innermost first."""

    place: list[int | str]
    code: str
    detail: str


def refuse_unstorable(value: Any, settings: Settings, pointer: str = "") -> None:
    """Postgres can store no NUL, neither in a text nor in JSON; integers beyond 64 bits come back as something else in
    most languages; and nobody means to nest that deep."""
    found = _unstorable_in(value, settings.deepest_json)
    if found is not None:
        at = pointer_to(reversed(found.place), pointer)
        raise too_deep(at, settings) if found.code == TOO_DEEP else refusal(at, found.code, found.detail)


def _unstorable_in(value: Any, depth_left: int) -> Unstorable | None:  # noqa: PLR0911 - a function for scalars would take twice as long
    """The place is collected on the way back: written down for each of many items, a long name would be repeated as
    many times."""
    kind = type(value)
    if kind is str:
        return Unstorable([], NUL, "a string must not contain the character NUL") if "\0" in value else None
    if kind is int:
        fits = LEAST_INTEGER <= value <= GREATEST_INTEGER
        return None if fits else Unstorable([], TOO_LARGE, "an integer must fit into 64 bits")
    if kind is not dict and kind is not list:
        return None
    if depth_left <= 0:
        return Unstorable([], TOO_DEEP, "")
    if kind is dict and "\0" in "".join(value):
        return Unstorable([], NUL, "a name must not contain the character NUL")
    for below in value.values() if kind is dict else value:
        found = _unstorable_in(below, depth_left - 1)
        if found is not None:
            found.place.append(next(name for name, each in _items(value) if each is below))
            return found
    return None


def _items(value: Any) -> Iterable[tuple[int | str, Any]]:
    return value.items() if isinstance(value, dict) else enumerate(value)


def nul(pointer: str) -> Refused:
    return refusal(pointer, NUL, "a string must not contain the character NUL")


def number_too_large(pointer: str) -> Refused:
    return refusal(pointer, TOO_LARGE, "an integer must fit into 64 bits")


def too_deep(pointer: str, settings: Settings) -> Refused:
    return refusal(pointer, TOO_DEEP, f"JSON may be nested {settings.deepest_json} levels deep")
