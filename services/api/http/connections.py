"""HTTP connections with what uvicorn's own lack: a response can cut them off, and a request's head is limited in time
and size."""

import asyncio
import socket
import struct
from functools import partial
from http import HTTPStatus
from typing import Any

import msgspec
from litestar.types import Scope
from uuid_utils.compat import uuid7
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CUT_OFF = "cut_off"
LARGEST_HEAD_BYTES, LARGEST_HEADER_BYTES = 64 * 1024, 8 * 1024
HEADER_OVERHEAD_BYTES = len(": \r\n")
LINGER_SECONDS = 2
"""So long the rest of a refused request is read and dropped: closed at once, the connection would be reset before the
client has read why."""
NO_LINGERING = struct.pack("ii", 1, 0)


class TooLarge(Exception):
    """Raised through the parser, which then reads no further."""


class Connection(HttpToolsProtocol):
    """Lends the means to be cut off to every request that comes over it.

    Nothing but the head of a request may come while none is under way, and it has to be whole within `header_seconds`
    from its first byte, on a new connection from its beginning. Uvicorn's own limit is for the silence between two
    requests, and any byte ends it.

    The head, and the trailers behind a body, have a largest size; that of each header counts when it is whole. The
    parser keeps what is unfinished, so bytes that complete nothing count, too.
    """

    def __init__(self, *arguments: Any, header_seconds: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._header_seconds = header_seconds
        self._giving_up: asyncio.TimerHandle | None = None
        self._head_bytes = 0
        self._unfinished_bytes = 0
        self._too_large: str | None = None
        self._is_refused = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, CUT_OFF: partial(_reset, transport)}
        self._expect_a_head()

    def data_received(self, data: bytes) -> None:
        if self._is_refused:
            return
        self._unfinished_bytes += len(data)
        super().data_received(data)
        if self._head_bytes + self._unfinished_bytes > LARGEST_HEAD_BYTES and not self._is_refused:
            self._too_large = f"the head of a request may have {LARGEST_HEAD_BYTES:,} bytes"
            self.send_400_response(self._too_large)
        if self.cycle is None or self.cycle.response_complete:
            self._expect_a_head()

    def on_message_begin(self) -> None:
        self._head_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        size = len(name) + len(value) + HEADER_OVERHEAD_BYTES
        if size > LARGEST_HEADER_BYTES:
            self._too_large = f"a header may have {LARGEST_HEADER_BYTES:,} bytes; {shown(name)} has {size:,}"
            raise TooLarge
        super().on_header(name, value)
        self._count(size)

    def on_body(self, body: bytes) -> None:
        self._unfinished_bytes = 0
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._unfinished_bytes = 0
        super().on_message_complete()

    def on_headers_complete(self) -> None:
        self._unfinished_bytes = 0
        self._expect_nothing()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """In place of uvicorn's, which is no problem document: for what is no HTTP, and for what is too large of it."""
        self._is_refused = True
        self.loop.call_later(LINGER_SECONDS, self.transport.close)
        if self.cycle is not None and not self.cycle.response_complete:
            if self.cycle.response_started:
                self.transport.close()  # another answer is under way
                return
            self.cycle.disconnected = True  # its handler may wait for the rest of the body
            self.cycle.message_event.set()
        if self._too_large is not None:
            self.transport.write(refusal(431, "head-too-large", self._too_large))
        else:
            self.transport.write(refusal(400, "malformed-request", msg))
        self.transport.write_eof()
        self.flow.resume_reading()

    def cut_off_if_stuck(self) -> None:
        if self.flow.write_paused:
            _reset(self.transport)

    def _count(self, size: int) -> None:
        self._unfinished_bytes = 0
        self._head_bytes += size
        if self._head_bytes > LARGEST_HEAD_BYTES:
            self._too_large = f"the head of a request may have {LARGEST_HEAD_BYTES:,} bytes"
            raise TooLarge

    def _expect_a_head(self) -> None:
        """The first byte counts: whoever sends one at a time gets no longer."""
        if self._giving_up is None and not self.transport.is_closing():
            self._giving_up = self.loop.call_later(self._header_seconds, self.transport.close)

    def _expect_nothing(self) -> None:
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None


def cut_off(scope: Scope) -> None:
    """Drops the request's connection with everything that is unsent."""
    scope["state"][CUT_OFF]()


def _reset(transport: asyncio.Transport) -> None:
    """Without lingering: else the kernel would go on offering megabytes to a client that takes nothing."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
    transport.abort()


def shown(name: bytes) -> str:
    return name[:40].decode("latin-1")


def refusal(status: int, code: str, detail: str) -> bytes:
    """A whole answer, made before there is a request that the app could be asked to answer."""
    request_id = uuid7().hex
    problem = {
        "type": f"/problems/{code}",
        "code": code,
        "title": code.replace("-", " ").capitalize(),
        "status": status,
        "detail": detail,
        "request_id": request_id,
    }
    body = msgspec.json.encode(problem)
    head = (
        f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n"
        f"content-type: application/problem+json\r\ncontent-length: {len(body)}\r\n"
        f"cache-control: no-store\r\nx-content-type-options: nosniff\r\n"
        f"x-request-id: {request_id}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body
