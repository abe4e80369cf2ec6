"""An answer in pieces, which ends when its client does, and which can be lost on the way."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from typing import Any

from litestar import Request, Response
from litestar.types import ASGIApp, Receive, Scope, Send

from windlass.services.fake_providers.connection import HungUp, connection_of, until_gone


class Lost(Exception):
    """Raised by whoever makes the pieces: here the connection is lost."""


class Streamed(Response[bytes]):
    """Litestar's own streams do not always close the generator whose client has gone."""

    def __init__(
        self, pieces: AsyncGenerator[bytes, None], media_type: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(b"", media_type=media_type, headers=dict(headers or {}))
        self._pieces = pieces

    def to_asgi_response(self, app: Any, request: Request[Any, Any, Any], **options: Any) -> ASGIApp:  # type: ignore[override]
        start = super().to_asgi_response(app, request, **options)

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            # The response has no body of its own, and says so unless somebody knows better.
            headers = [header for header in start.encode_headers() if header != (b"content-length", b"0")]
            await send({"type": "http.response.start", "status": start.status_code, "headers": headers})
            await self._send_all(scope, receive, send)

        return respond

    async def _send_all(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            async with aclosing(self._pieces) as pieces, asyncio.TaskGroup() as group:
                watching = group.create_task(_leave_with_the_client(receive))
                async for piece in pieces:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                watching.cancel()
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        except* HungUp:
            pass
        except* Lost:
            connection_of(scope).drop()
            await until_gone(receive)


async def _leave_with_the_client(receive: Receive) -> None:
    await until_gone(receive)
    raise HungUp
