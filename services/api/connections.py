"""HTTP connections that a response can cut off, as uvicorn's own cannot: it closes only what has been taken."""

import asyncio
import socket
import struct
from functools import partial

from litestar.types import Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

CUT_OFF = "cut_off"
NO_LINGERING = struct.pack("ii", 1, 0)


class Connection(HttpToolsProtocol):
    """Lends the means to every request that comes over it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, CUT_OFF: partial(_reset, transport)}

    def cut_off_if_stuck(self) -> None:
        if self.flow.write_paused:
            _reset(self.transport)


def cut_off(scope: Scope) -> None:
    """Drops the request's connection with everything that is unsent."""
    scope["state"][CUT_OFF]()


def _reset(transport: asyncio.Transport) -> None:
    """Without lingering: else the kernel would go on offering megabytes to a client that takes nothing."""
    transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, NO_LINGERING)
    transport.abort()
