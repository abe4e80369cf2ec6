"""A long body, sent piece by piece: bounded in memory, and for no longer than its client takes something of it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

from litestar.types import Receive, Scope, Send

from windlass.services.api.http.connections import cut_off

PIECE_BYTES = 32_768
"""What is sent at a time: a client that takes a large message slowly is not mistaken for one that takes nothing."""


class ClientGone(Exception):
    """The client has closed the connection."""


class ClientStuck(Exception):
    """The client takes nothing of what is sent."""


async def send_all(
    messages: AsyncGenerator[bytes, None], scope: Scope, receive: Receive, send: Send, *, patience_seconds: float
) -> bool:
    """Sends what a generator yields until it ends, the client leaves, or a piece is not taken in time: then it returns
    true, and the connection is cut off."""
    is_stuck = False
    try:
        async with aclosing(messages), asyncio.TaskGroup() as group:
            watching = group.create_task(_until_gone(receive))
            async for message in messages:
                await _send(send, message, patience_seconds)
            watching.cancel()
            await _send(send, b"", patience_seconds, more=False)
    except* ClientGone:
        pass
    except* ClientStuck:
        # It comes back for the rest. The server may not close the connection in order, which would keep everything
        # that is unsent until it is taken.
        is_stuck = True
        cut_off(scope)
        await _until_disconnected(receive)
    return is_stuck


async def _send(send: Send, message: bytes, patience_seconds: float, *, more: bool = True) -> None:
    for start in range(0, max(len(message), 1), PIECE_BYTES):
        try:
            async with asyncio.timeout(patience_seconds):
                piece = message[start : start + PIECE_BYTES]
                await send({"type": "http.response.body", "body": piece, "more_body": more})
        except TimeoutError:
            raise ClientStuck from None


async def _until_gone(receive: Receive) -> None:
    await _until_disconnected(receive)
    raise ClientGone


async def _until_disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
