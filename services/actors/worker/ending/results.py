"""What can be kept of an actor's result: mended where Postgres needs it, and neither too large nor too deep."""

from collections.abc import Iterator
from typing import Any

from windlass.services.actors.worker.context.context import Context
from windlass.shared import db
from windlass.shared.actors.awaiting import refuse_awaitables
from windlass.shared.errors import ResultTooDeep, ResultTooLarge
from windlass.shared.settings import Settings
from windlass.shared.storable import is_deeper_than, storable
from windlass.typed_json import as_document

LITTLE_PIECES = 500
LITTLE_CHARACTERS = 50_000
"""What has no more than this is written in less than a millisecond."""


async def fitting_async(context: Context, result: Any, settings: Settings) -> Any:
    """The same on an event loop, which a large result does not hold up."""
    if is_little(result):
        return fitting(result, settings)
    return await context.on_loop().call(fitting, result, settings)


def is_little(result: Any) -> bool:
    """Whether it is soon looked through, however deep it is."""
    waiting, pieces, characters = [iter((result,))], 0, 0
    while waiting:
        for piece in waiting.pop():
            pieces += 1
            characters += len(piece) if isinstance(piece, str | bytes) else 0
            if pieces > LITTLE_PIECES or characters > LITTLE_CHARACTERS:
                return False
            if isinstance(piece, dict | list | tuple):
                waiting.append(_pieces_of(piece))
    return True


def _pieces_of(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.keys()
        yield from value.values()
    else:
        yield from value


def fitting(result: Any, settings: Settings) -> Any:
    """The result, if it can be kept: another attempt would only bring one as large, or as deep."""
    try:
        written = db.as_json(result)
    except db.Unstorable:
        refuse_awaitables(result, "the result")
        written, result = "", _as_document(result)
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


def _as_document(result: Any) -> Any:
    """Models that stand inside of lists and dataclasses as the JSON that they stand for."""
    try:
        return as_document(result)
    except (TypeError, ValueError, RecursionError, OverflowError):
        return result


def _wants_a_closer_look(written: str, deepest: int) -> bool:
    """Nearly no result does: it would take a NUL, or brackets enough to nest too deep."""
    return "\\u0000" in written or written.count("[") + written.count("{") > deepest
