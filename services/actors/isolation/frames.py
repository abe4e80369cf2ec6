"""Messages between an attempt and its process: JSON, each with its length before it."""

from collections.abc import Iterator
from typing import Any

import msgspec

from windlass.shared.storable import storable

LARGEST_BYTES = 64 * 2**20
LENGTH_BYTES = 4


class Unreadable(Exception):
    """What came over the line is no message."""


class TooLong(ValueError):
    """A message that nobody would take."""


def framed(message: dict[str, Any]) -> bytes:
    """Raises TypeError and the like for what is no JSON."""
    try:
        body = msgspec.json.encode(message)
    except UnicodeEncodeError:
        body = msgspec.json.encode(storable(message))
    if len(body) > LARGEST_BYTES:
        raise TooLong(f"{len(body):,} bytes as JSON, and {LARGEST_BYTES:,} can be passed on")
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


class Frames:
    """Takes bytes as they are read, and gives whole messages."""

    def __init__(self) -> None:
        self._unread = bytearray()

    def take(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        self._unread += chunk
        while len(self._unread) >= LENGTH_BYTES:
            end = LENGTH_BYTES + int.from_bytes(self._unread[:LENGTH_BYTES], "big")
            if end > LENGTH_BYTES + LARGEST_BYTES:
                raise Unreadable(f"a message of {end:,} bytes")
            if len(self._unread) < end:
                return
            body = bytes(self._unread[LENGTH_BYTES:end])
            del self._unread[:end]
            try:
                yield msgspec.json.decode(body, type=dict[str, Any])
            except (msgspec.DecodeError, RecursionError) as error:
                raise Unreadable(str(error)) from error
