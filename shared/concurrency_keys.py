"""What makes tasks share a concurrency key: the values at JSON Pointers (RFC 6901) into their payloads."""

import re
from collections.abc import Sequence
from typing import Any, TypedDict

import msgspec

LONGEST_KEY = 255

_POINTER = re.compile(r"(?:/(?:[^~/]|~[01])*)+")
_INDEX = re.compile(r"0|[1-9][0-9]*")


def is_pointer(text: str) -> bool:
    """Of a place inside the document; the empty one, which is the whole of it, is none of these."""
    return _POINTER.fullmatch(text) is not None


def key_of(payload: dict[str, Any], pointers: Sequence[str], schema: dict[str, Any]) -> str | None:
    """A string as it is, anything else as compact JSON, and several values as a JSON list, so that no two lists look
    alike. What the payload leaves out has its default. None where one of the values is missing or null: what says
    nothing is limited by nothing."""
    values = [value_or_default(payload, pointer, schema) for pointer in pointers]
    if any(value is None for value in values):
        return None
    if len(values) > 1:
        return _compact(values)
    (value,) = values
    return value if isinstance(value, str) else _compact(value)


class Part(TypedDict):
    """Where one value of a key comes from, for a payload with references: `path` below `value`, else `default`."""

    value: Any
    path: str
    default: Any


def parts_of(payload: dict[str, Any], pointers: Sequence[str], schema: dict[str, Any]) -> list[Part]:
    """For `shared/store/sql/workflows/element_keys.sql`, which makes the same key of them."""
    parts: list[Part] = []
    for pointer in pointers:
        first, _, rest = pointer[1:].partition("/")
        field = _name(first)
        default = value_or_default({}, pointer, schema)
        known = field in payload
        path = f"/{rest}" if rest and known else ""
        parts.append({"value": payload[field] if known else default, "path": path, "default": default})
    return parts


def value_or_default(document: Any, pointer: str, schema: dict[str, Any]) -> Any:
    """None where there is nothing."""
    definitions = schema.get("$defs", {})
    for part in pointer.split("/")[1:]:
        name = _name(part)
        if isinstance(document, dict):
            schema = _property(schema, name, definitions)
            document = document.get(name, schema.get("default"))
        elif isinstance(document, list):
            document, schema = value_at(document, f"/{part}"), {}
        else:
            return None
    return document


def _property(schema: dict[str, Any], name: str, definitions: dict[str, Any]) -> dict[str, Any]:
    """The schema of a field, in the object's own schema or in one that it consists of."""
    schemas = [schema]
    for each in schemas:
        found = each.get("properties", {}).get(name)
        if isinstance(found, dict):
            return found
        named = str(each.get("$ref", "")).removeprefix("#/$defs/")
        below = [definitions.get(named), *each.get("allOf", ()), *each.get("anyOf", ()), *each.get("oneOf", ())]
        schemas += [one for one in below if isinstance(one, dict) and one not in schemas]
    return {}


def _name(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~")


def value_at(document: Any, pointer: str) -> Any:
    """None where there is nothing."""
    for part in pointer.split("/")[1:]:
        name = _name(part)
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
