"""Server-sent events as an ASGI response that waits for its client no longer than is good for the others."""

import random
from collections.abc import AsyncGenerator
from typing import Any, Literal

from litestar import Request, Response
from litestar.types import ASGIApp, Receive, Scope, Send

from windlass.services.api.http.sending import send_all
from windlass.shared.metrics.services import STREAM_CLIENTS, STREAMS_CUT
from windlass.shared.store.reading.events import EventJustRead

HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
PING = b": ping\n\n"

StreamKind = Literal["task", "many", "project"]


class EventStream(Response[None]):
    """Sends what a generator yields until it ends, the client leaves, or a piece is not taken in time.

    Litestar's own streaming waits for ever for a client that does not read.
    """

    def __init__(
        self, messages: AsyncGenerator[bytes, None], *, patience_seconds: float, kind: StreamKind = "task"
    ) -> None:
        super().__init__(None, media_type="text/event-stream", headers=HEADERS)
        self._messages = messages
        self._patience_seconds = patience_seconds
        self._kind = kind

    def to_asgi_response(self, app: Any, request: Request[Any, Any, Any], **options: Any) -> ASGIApp:  # type: ignore[override]
        start = super().to_asgi_response(app, request, **options)

        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            headers = [(name, value) for name, value in start.encode_headers() if name != b"content-length"]
            await send({"type": "http.response.start", "status": start.status_code, "headers": headers})
            with STREAM_CLIENTS.labels(self._kind).track_inprogress():
                patience = self._patience_seconds
                if await send_all(self._messages, scope, receive, send, patience_seconds=patience):
                    STREAMS_CUT.labels(self._kind).inc()

        return respond


def retry_hint() -> bytes:
    """When to come back after a broken connection, spread out so that not everybody comes at once."""
    return f"retry: {random.randint(800, 2500)}\n\n".encode()  # noqa: S311 - guards no secret


def delay_of(event: EventJustRead) -> float:
    """From the moment in which an event was written to its reading, both by Postgres' clock: ours may differ."""
    seconds: float = (event.read_at - event.at).total_seconds()
    return max(seconds, 0.0)
