"""Server-sent events as an ASGI response that waits for its client no longer than is good for the others."""

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Any

from litestar import Request, Response
from litestar.types import ASGIApp, Receive, Scope, Send

from services.api.connections import cut_off

HEADERS = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
PING = b": ping\n\n"
PIECE_BYTES = 32_768
"""What is sent at a time: a client that takes a large event slowly is not mistaken for one that takes nothing."""


class ClientGone(Exception):
    """The client has closed the connection."""


class ClientStuck(Exception):
    """The client takes nothing of what is sent."""


class EventStream(Response[None]):
    """Sends what a generator yields until it ends, the client leaves, or a piece is not taken in time.

    Litestar's own streaming waits for ever for a client that does not read.
    """

    def __init__(self, messages: AsyncGenerator[bytes, None], *, patience_seconds: float) -> None:
        super().__init__(None, media_type="text/event-stream", headers=HEADERS)
        self._messages = messages
        self._patience_seconds = patience_seconds

    def to_asgi_response(self, app: Any, request: Request[Any, Any, Any], **options: Any) -> ASGIApp:  # type: ignore[override]
        start = super().to_asgi_response(app, request, **options)

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            headers = [(name, value) for name, value in start.encode_headers() if name != b"content-length"]
            await send({"type": "http.response.start", "status": start.status_code, "headers": headers})
            await self._send_all(scope, receive, send)

        return respond

    async def _send_all(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._messages) as messages, asyncio.TaskGroup() as group:
                watching = group.create_task(_until_gone(receive))
                async for message in messages:
                    await self._send(send, message)
                watching.cancel()
                await self._send(send, b"", more=False)
        except* ClientGone:
            pass
        except* ClientStuck:
            # It comes back with the last id that it has read. The server may not close the connection in order, which
            # would keep everything that is unsent until it is taken.
            cut_off(scope)
            await _until_disconnected(receive)

    async def _send(self, send: Send, message: bytes, *, more: bool = True) -> None:
        for start in range(0, max(len(message), 1), PIECE_BYTES):
            try:
                async with asyncio.timeout(self._patience_seconds):
                    piece = message[start : start + PIECE_BYTES]
                    await send({"type": "http.response.body", "body": piece, "more_body": more})
            except TimeoutError:
                raise ClientStuck from None


def retry_hint() -> bytes:
    """When to come back after a broken connection, spread out so that not everybody comes at once."""
    return f"retry: {random.randint(800, 2500)}\n\n".encode()  # noqa: S311 - guards no secret


async def _until_gone(receive: Receive) -> None:
    await _until_disconnected(receive)
    raise ClientGone


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
