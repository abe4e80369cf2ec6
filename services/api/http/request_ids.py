"""Every request has an id, which its error documents and log lines carry, and a span while somebody traces."""

import uuid

from litestar.types import ASGIApp, Message, Receive, Scope, Send

from windlass.shared import tracing
from windlass.shared.process import log_context

TRACED = "/api/"
"""Not the questions that a cluster asks by itself, all the time."""


def identify_requests(app: ASGIApp) -> ASGIApp:
    async def numbered(scope: Scope, receive: Receive, send: Send) -> None:
        request_id = uuid.uuid4().hex
        scope["request_id"] = request_id  # type: ignore[typeddict-unknown-key]
        # Nobody lays it down: each request is a task of its own, and errors are told after it has come back here.
        log_context.take_up(request_id=request_id)
        if tracing.is_on() and scope.get("path_template", "").startswith(TRACED):
            await _traced(app, scope, receive, send)
        else:
            await app(scope, receive, send)

    return numbered


async def _traced(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """The span ends with the head of the answer: a stream may stay open for hours."""
    parent = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"traceparent"), None)
    span = tracing.answering(str(scope.get("method")), scope["path_template"], parent).__enter__()

    def end(status: int) -> None:
        span.note(http__response__status_code=status)
        if status >= 500:
            span.fail(str(status))
        span.end()

    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            end(message["status"])
        await send(message)

    try:
        await app(scope, receive, told)
    except Exception as error:
        # Its answer is made further out, as when a key is refused.
        status: int = getattr(error, "status", 0) or getattr(error, "status_code", 500)
        end(status)
        raise
    finally:
        span.end()
