"""What can be kept of an actor's result: mended where Postgres needs it, and neither too large nor too deep."""

from typing import Any

from windlass.shared import db
from windlass.shared.errors import ResultTooDeep, ResultTooLarge
from windlass.shared.settings import Settings
from windlass.shared.storable import is_deeper_than, storable


def fitting(result: Any, settings: Settings) -> Any:
    """The result, if it can be kept: another attempt would only bring one as large, or as deep."""
    try:
        written = db.as_json(result)
    except db.Unstorable:
        written = ""
    if not written or _wants_a_closer_look(written, settings.deepest_json):
        if is_deeper_than(result, deepest := settings.deepest_json):
            message = f"the result is JSON that is nested more than {deepest} levels deep, and no more can be kept"
            raise ResultTooDeep(message, limit_levels=deepest)
        result = storable(result)
        try:
            written = db.as_json(result)
        except db.Unstorable:
            return result  # told apart where it is written
    if (size := len(written.encode())) > (most := settings.largest_result_bytes):
        message = f"the result has {size:,} bytes as JSON and {most:,} can be kept"
        raise ResultTooLarge(message, size_bytes=size, limit_bytes=most)
    return result


def _wants_a_closer_look(written: str, deepest: int) -> bool:
    """Nearly no result does: it would take a NUL, or brackets enough to nest too deep."""
    return "\\u0000" in written or written.count("[") + written.count("{") > deepest
