"""HTTP connections that can be dropped without an answer, as networks do and servers usually cannot."""

import asyncio
import select
from typing import Any

from litestar import Request
from litestar.types import Receive, Scope
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

LENT = "connection"


class HungUp(Exception):
    """The connection is gone, and with it whoever might have been answered."""


class Connection(HttpToolsProtocol):
    """Lends itself to every request that comes over it."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.app_state = {**self.app_state, LENT: self}

    def drop(self) -> None:
        # What was sent before still arrives: a stream is lost in the middle, not from the beginning.
        self.transport.close()

    def has_lost_its_client(self) -> bool:
        """As the kernel knows it, which may be some moments before the server has heard of it."""
        if self.transport.is_closing():
            return True
        poll = select.poll()
        poll.register(self.transport.get_extra_info("socket").fileno(), select.POLLRDHUP)
        return bool(poll.poll(0))


def connection_of(scope: Scope) -> Connection:
    connection = scope["state"][LENT]
    assert isinstance(connection, Connection)
    return connection


async def drop(request: Request[Any, Any, Any]) -> None:
    """Closes the connection; the server notices by itself that there is nobody to answer."""
    connection_of(request.scope).drop()
    await until_gone(request.receive)
    raise HungUp


async def until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def stay(request: Request[Any, Any, Any], seconds: float | None) -> None:
    """Waits so long, for ever if there is no number, but not for longer than the client does."""
    try:
        async with asyncio.timeout(seconds):
            await until_gone(request.receive)
    except TimeoutError:
        return
    raise HungUp
