"""A file as an ASGI response: what is promised in its headers is sent whole, or the connection breaks."""

import logging
from collections.abc import AsyncGenerator, Mapping
from typing import Any

from litestar import Request, Response
from litestar.types import ASGIApp, Receive, Scope, Send

from windlass.services.api.http.sending import send_all
from windlass.shared.storage import StorageError

log = logging.getLogger("api")


class FileResponse(Response[None]):
    """With these headers and no others; without `pieces`, without a body."""

    def __init__(
        self,
        status: int,
        headers: Mapping[str, str],
        pieces: AsyncGenerator[bytes, None] | None = None,
        *,
        patience_seconds: float = 0,
    ) -> None:
        super().__init__(None, status_code=status)
        self._fields = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        self._pieces = pieces
        self._patience_seconds = patience_seconds

    def to_asgi_response(self, app: Any, request: Request[Any, Any, Any], **options: Any) -> ASGIApp:  # type: ignore[override]  # noqa: ARG002
        async def respond(scope: Scope, receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": self.status_code or 200, "headers": self._fields})
            if self._pieces is None:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return
            try:
                await send_all(self._pieces, scope, receive, send, patience_seconds=self._patience_seconds)
            except* StorageError as errors:
                # Too late for an answer that says so. The server breaks the connection off where a response ends before
                # its length, so that nobody takes the beginning for the whole.
                log.error("a file ended before its end at %s: %s", request.url.path, errors.exceptions[0])  # noqa: TRY400

        return respond
