"""What Postgres cannot keep, and nobody means to send: told with its place, and not mended."""

from typing import Any

from windlass.shared.settings import Settings
from windlass.shared.submission.refusal import Refused, escape, refusal

LEAST_INTEGER, GREATEST_INTEGER = -(2**63), 2**64 - 1


def is_storable(value: Any, depth_left: int) -> bool:
    """The quick look, without the names of what it finds."""
    kind = type(value)
    if kind is str:
        return "\0" not in value
    if kind is int:
        return bool(LEAST_INTEGER <= value <= GREATEST_INTEGER)
    if kind is not dict and kind is not list:
        return True
    if depth_left <= 0 or (kind is dict and "\0" in "".join(value)):
        return False
    for below in value.values() if kind is dict else value:  # noqa: SIM110 - a generator takes twice as long
        if not is_storable(below, depth_left - 1):
            return False
    return True


def refuse_unstorable(value: Any, settings: Settings, pointer: str = "", depth: int = 0) -> None:
    """Names what the quick look has found. Postgres can store no NUL, neither in a text nor in JSON; integers beyond 64
    bits come back as something else in most languages; and nobody means to nest that deep."""
    if isinstance(value, dict | list) and depth >= settings.deepest_json:
        raise too_deep(pointer, settings)
    if isinstance(value, str) and "\0" in value:
        raise refusal(pointer, "nul-character", "a string must not contain the character NUL")
    if isinstance(value, int) and not LEAST_INTEGER <= value <= GREATEST_INTEGER:
        raise refusal(pointer, "number-too-large", "an integer must fit into 64 bits")
    if isinstance(value, dict):
        for key, below in value.items():
            refuse_unstorable(key, settings, pointer, depth)
            refuse_unstorable(below, settings, f"{pointer}/{escape(key)}", depth + 1)
    if isinstance(value, list):
        for number, below in enumerate(value):
            refuse_unstorable(below, settings, f"{pointer}/{number}", depth + 1)


def too_deep(pointer: str, settings: Settings) -> Refused:
    return refusal(pointer, "nested-too-deep", f"JSON may be nested {settings.deepest_json} levels deep")
