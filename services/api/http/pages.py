"""Pages of a list: so many items, or fewer once they hold so many bytes, and where to go on."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

import msgspec
from litestar import Response

LARGEST_PAGE_BYTES = 8_000_000
LARGE_ROWS_AT_ONCE = 8
"""Where one row may have a megabyte."""

Read = Callable[[Any, int], Awaitable[Iterable[tuple[Any, Any]]]]
"""From a cursor and a number of rows to that many documents, each with the cursor behind it; fewer at the end."""

_encode = msgspec.json.Encoder().encode


async def page(read: Read, *, cursor: Any, limit: int, at_once: int | None = None) -> Response[dict[str, Any]]:
    """Never empty while there is a row. `at_once` rows are in memory at a time: name it where a row may be large."""
    items: list[bytes] = []
    size = 0
    while True:
        wanted = min(at_once or limit + 1, limit + 1 - len(items))
        found = list(await read(cursor, wanted))
        for position, document in found:
            item = _encode(document)
            if len(items) == limit or (items and size + len(item) > LARGEST_PAGE_BYTES):
                return _response(items, cursor)
            items.append(item)
            size += len(item)
            cursor = position
        if len(found) < wanted:
            return _response(items, None)


def _response(items: list[bytes], next_cursor: Any) -> Response[dict[str, Any]]:
    rest = b"" if next_cursor is None else b',"next_cursor":' + _encode(_written(next_cursor))
    body: Any = b'{"items":[' + b",".join(items) + b"]" + rest + b"}"
    return Response(body, media_type="application/json")


def _written(cursor: Any) -> Any:
    return str(cursor) if isinstance(cursor, int) else cursor
