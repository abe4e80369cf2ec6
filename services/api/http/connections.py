"""HTTP connections with what uvicorn's own lack: a response can cut them off, and a request's head has its time."""

import asyncio
import socket
import struct
from functools import partial
from typing import Any

from litestar.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CUT_OFF = "cut_off"
NO_LINGERING = struct.pack("ii", 1, 0)


class Connection(HttpToolsProtocol):
    """Lends the means to be cut off to every request that comes over it.

    Nothing but the head of a request may come while none is under way, and it has to be whole within `header_seconds`
    from its first byte, on a new connection from its beginning. Uvicorn's own limit is for the silence between two
    requests, and any byte ends it.
    """

    def __init__(self, *arguments: Any, header_seconds: float, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._header_seconds = header_seconds
        self._giving_up: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, CUT_OFF: partial(_reset, transport)}
        self._expect_a_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is None or self.cycle.response_complete:
            self._expect_a_head()

    def on_headers_complete(self) -> None:
        self._expect_nothing()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._expect_nothing()
        super().connection_lost(exc)

    def cut_off_if_stuck(self) -> None:
        if self.flow.write_paused:
            _reset(self.transport)

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
