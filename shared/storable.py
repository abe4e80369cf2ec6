"""What came from outside, so that Postgres can keep it: it knows no NUL, and no half of a surrogate pair."""

from typing import Any

import msgspec

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def storable_text(text: str) -> str:
    """The text with a replacement character where Postgres has none."""
    text = text.replace("\0", REPLACEMENT)
    try:
        text.encode()
    except UnicodeEncodeError:
        # Two halves that stand together are one character; what is alone is replaced.
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def storable(value: Any) -> Any:
    """The same for a document, names of fields included. Nearly none needs it, so the whole is looked at at once."""
    try:
        written = msgspec.json.encode(value)
    except UnicodeEncodeError:
        return _mended(value)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return value  # nothing that another character would mend
    return _mended(value) if b"\\u0000" in written else value


def is_deeper_than(value: Any, most: int) -> bool:
    """Whether more than so many objects and lists stand inside one another. Not by recursion: it may be very deep."""
    level = _containers([value])
    for _ in range(most):
        if not level:
            return False
        level = [below for each in level for below in _containers(each.values() if isinstance(each, dict) else each)]
    return bool(level)


def _containers(values: Any) -> list[Any]:
    return [each for each in values if isinstance(each, dict | list | tuple)]


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return storable_text(value)
    if isinstance(value, dict):
        return {_mended(name): _mended(below) for name, below in value.items()}
    if isinstance(value, list | tuple):
        return [_mended(each) for each in value]
    try:
        written = msgspec.to_builtins(value)  # a dataclass, a set: what is written of it
    except (TypeError, ValueError):
        return value
    return value if type(written) is type(value) else _mended(written)
