"""What makes tasks share a concurrency key: the values at JSON Pointers (RFC 6901) into their payloads."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec

LONGEST_KEY = 255

_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]*")


def is_pointer(text: str) -> bool:
    """Of a place inside the document; the empty one, which is the whole of it, is none of these."""
    return _POINTER.fullmatch(text) is not None


def key_of(payload: dict[str, Any], pointers: Sequence[str]) -> str | None:
    """A string as it is, anything else as compact JSON, and several values as a JSON list, so that no two lists look
    alike. None where one of them is missing or null: what says nothing is limited by nothing."""
    values = [value_at(payload, pointer) for pointer in pointers]
    if any(value is None for value in values):
        return None
    if len(values) > 1:
        return _compact(values)
    (value,) = values
    return value if isinstance(value, str) else _compact(value)


def value_at(document: Any, pointer: str) -> Any:
    """None where there is nothing."""
    for part in pointer.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(document, dict):
            document = document.get(name)
        elif isinstance(document, list) and _INDEX.fullmatch(name) and int(name) < len(document):
            document = document[int(name)]
        else:
            return None
    return document


def _compact(value: Any) -> str:
    """In one order of names: an object means the same however it was written."""
    return msgspec.json.encode(value, order="sorted").decode()
