"""Counts requests and their answers, around everything else: also those that no route takes."""

import time
from typing import Any

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

from windlass.shared.metrics.declaring import Kept
from windlass.shared.metrics.services import HTTP_REQUEST_SECONDS, HTTP_REQUESTS

METHODS = {"GET", "POST", "PATCH", "DELETE", "PUT", "HEAD", "OPTIONS"}
OTHER = "other"

_requests, _seconds = Kept(HTTP_REQUESTS), Kept(HTTP_REQUEST_SECONDS)


class RequestMetrics:
    """The app, looked at from outside. Litestar writes the pattern of the route that it chose into the scope."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await self._app(scope, receive, send)
            return
        answer = Answer(send)
        try:
            await self._app(scope, receive, answer.send)
        finally:
            answer.count(scope)


class Answer:
    """One answer as it is sent. A stream's time ends with its beginning."""

    __slots__ = ("_ended", "_send", "_started", "_status")

    def __init__(self, send: Send) -> None:
        self._send = send
        self._started = time.monotonic()
        self._ended: float | None = None
        self._status: int | None = None

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            headers: Any = message.get("headers", ())
            if any(name == b"content-type" and value.startswith(b"text/event-stream") for name, value in headers):
                self._ended = time.monotonic()
        await self._send(message)

    def count(self, scope: Scope) -> None:
        """Who left before there was an answer has not been given one."""
        if self._status is None:
            return
        method = scope["method"] if scope["method"] in METHODS else OTHER  # type: ignore[typeddict-item]
        route = scope.get("path_template") or OTHER
        _requests[method, route, str(self._status)].inc()
        _seconds[method, route].observe((self._ended or time.monotonic()) - self._started)
