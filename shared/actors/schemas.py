"""A payload's schema made ready to check by: nothing is fetched for it, and no pattern can take for ever."""

from collections.abc import Callable
from datetime import datetime, time
from typing import Any, Protocol

import jsonschema_rs
import msgspec

LARGEST_SCHEMA_BYTES = 64 * 1024
LARGEST_PATTERN_BYTES = 1024 * 1024
"""What one pattern may take in memory once it is compiled."""


class UnfitSchema(ValueError):
    """A schema that payloads cannot be checked by; the message goes on after the actor's name."""


class Validator(Protocol):
    """As the library has it: compiled once, asked from any thread."""

    def is_valid(self, instance: Any) -> bool: ...

    def iter_errors(self, instance: Any) -> Any: ...


def compiled(schema: dict[str, Any]) -> Validator:
    """Raises UnfitSchema."""
    size = len(msgspec.json.encode(schema))
    if size > LARGEST_SCHEMA_BYTES:
        raise UnfitSchema(f"its payload's schema has {size:,} bytes, and {LARGEST_SCHEMA_BYTES:,} are the most")
    try:
        validator: Validator = jsonschema_rs.Draft202012Validator(
            schema,
            formats=FORMATS,
            validate_formats=True,
            pattern_options=jsonschema_rs.RegexOptions(size_limit=LARGEST_PATTERN_BYTES),
            offline=True,
        )
    except (jsonschema_rs.ValidationError, ValueError) as error:
        raise UnfitSchema(f"its payload's schema cannot be used: {_reason(error)}") from error
    return validator


def _reason(error: ValueError) -> str:
    said = getattr(error, "message", None) or str(error)
    if "Retrieval is disabled" in said:
        return "a `$ref` leads out of it, and nothing is fetched; bring what it means into `$defs`"
    if "pattern" in getattr(error, "instance_path", ()) or 'is not a "regex"' in said:
        return f"{said}; a pattern without look-around and back references takes no longer than its text is long"
    return str(said)


def _read_by(read: Callable[[str], object]) -> Callable[[str], bool]:
    def reads(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return reads


# As Python reads them, a zone may be missing: whether it has to be there is the actor's to say.
FORMATS: dict[str, Callable[..., bool]] = {
    "date-time": _read_by(datetime.fromisoformat),
    "time": _read_by(time.fromisoformat),
}
