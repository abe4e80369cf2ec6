"""An answer's body that is read as it comes, but never more of it than may be."""

from collections.abc import AsyncIterator

import httpx

from windlass.shared.errors import ResultTooLarge


class BoundedStream(httpx.AsyncByteStream):
    """Raises `ResultTooLarge` once there are more bytes than allowed: of the whole, or of one line."""

    def __init__(self, inner: httpx.AsyncByteStream, sender: str, *, most_bytes: int, most_bytes_per_line: int) -> None:
        self._inner = inner
        self._sender = sender
        self._most_bytes = most_bytes
        self._most_bytes_per_line = most_bytes_per_line

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size, line = 0, 0
        async for part in self._inner:
            size += len(part)
            line = line + len(part) if (at := max(part.rfind(b"\n"), part.rfind(b"\r"))) < 0 else len(part) - at - 1
            if size > self._most_bytes:
                raise self._too_large("an answer", self._most_bytes)
            if line > self._most_bytes_per_line:
                raise self._too_large("a line", self._most_bytes_per_line)
            yield part

    async def aclose(self) -> None:
        await self._inner.aclose()

    def _too_large(self, what: str, most: int) -> ResultTooLarge:
        return ResultTooLarge(f"{self._sender} sent {what} of more than {most:,} bytes; it was cut off", limit=most)


def bound(response: httpx.Response, sender: str, *, most_bytes: int, most_bytes_per_line: int) -> None:
    """Before anything of the response's body is read."""
    assert isinstance(response.stream, httpx.AsyncByteStream)
    response.stream = BoundedStream(
        response.stream, sender, most_bytes=most_bytes, most_bytes_per_line=most_bytes_per_line
    )
