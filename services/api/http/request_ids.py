"""Every request has an id, which its answer, its errors and its log lines carry, and a span while somebody traces."""

import re

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send
from uuid_utils.compat import uuid7

from windlass.shared import tracing
from windlass.shared.process import log_context
from windlass.shared.scrubbing import withhold_label

TRACED = "/api/"
"""Not the questions that a cluster asks by itself, all the time."""


SANE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}")
HEADER = b"x-request-id"


def identify_requests(app: ASGIApp) -> ASGIApp:
    """Around everything else: also what no route takes has its id."""

    async def numbered(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != ScopeType.HTTP:
            await app(scope, receive, send)
            return
        sent = sent_id(scope)
        request_id = sent or uuid7().hex
        scope["request_id"] = request_id  # type: ignore[typeddict-unknown-key]
        scope["sent_request_id"] = sent  # type: ignore[typeddict-unknown-key]
        # Nobody lays it down: each request is a task of its own.
        log_context.take_up(request_id=request_id)

        async def told(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message["headers"], (HEADER, request_id.encode())]
            await send(message)

        await app(scope, receive, told)

    return numbered


def sent_id(scope: Scope) -> str | None:
    """The client's own, so that it finds itself in our log; one that could be a secret or break a line is not taken."""
    sent = next((value.decode("latin-1") for name, value in scope["headers"] if name == HEADER), "")
    return sent if SANE.fullmatch(sent) and withhold_label(sent) == sent else None


def trace_requests(app: ASGIApp) -> ASGIApp:
    async def traced(scope: Scope, receive: Receive, send: Send) -> None:
        if tracing.is_on() and scope.get("path_template", "").startswith(TRACED):
            await _traced(app, scope, receive, send)
        else:
            await app(scope, receive, send)

    return traced


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
