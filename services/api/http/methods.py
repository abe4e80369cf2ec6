"""`HEAD` wherever `GET` is, and answers to `OPTIONS` and to wrong methods that say what a path takes."""

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, ReceiveMessage, Scope, Send

NO_METHOD = "ANY"
"""Nothing takes it, so the answer names everything that is taken."""


def is_head(scope: Scope) -> bool:
    """Whether nobody waits for the body: a handler whose body is dear need not make it."""
    return "asked_by_head" in scope


def answering_every_method(app: ASGIApp) -> ASGIApp:
    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        method = scope["method"] if scope["type"] == ScopeType.HTTP else None
        if method == "HEAD":
            scope["asked_by_head"] = True  # type: ignore[typeddict-unknown-key]
            head = HeadAnswer(scope, receive, _allowing_head(send))
            await app(scope, head.receive, head.send)
        elif method == "OPTIONS" and not _is_preflight(scope):
            await app(scope, receive, OptionsAnswer(scope, _allowing_head(send)).send)
        else:
            await app(scope, receive, _allowing_head(send))

    return answer


class HeadAnswer:
    """A `HEAD` is a `GET` whose answer ends with its head; that of a stream, which would go on, ends there too."""

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._scope, self._receive, self._send = scope, receive, send
        self._is_told = False
        scope["method"] = "GET"  # type: ignore[typeddict-unknown-key]

    async def receive(self) -> ReceiveMessage:
        return {"type": "http.disconnect"} if self._is_told else await self._receive()

    async def send(self, message: Message) -> None:
        if message["type"] != "http.response.start" or self._is_told:
            return
        self._is_told = True
        # The server knows by it that no body follows the length in the head, and the metrics count what was asked.
        self._scope["method"] = "HEAD"  # type: ignore[typeddict-unknown-key]
        await self._send(message)
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})


class OptionsAnswer:
    """Litestar's own knows the methods of one handler only; its refusal of a wrong method knows them all."""

    def __init__(self, scope: Scope, send: Send) -> None:
        self._scope, self._send = scope, send
        self._is_refusal = False
        scope["method"] = NO_METHOD  # type: ignore[typeddict-unknown-key,arg-type]

    async def send(self, message: Message) -> None:
        self._scope["method"] = "OPTIONS"  # type: ignore[typeddict-unknown-key]
        if message["type"] == "http.response.start" and message["status"] == 405:
            self._is_refusal = True
            message["status"] = 204
            message["headers"] = [each for each in message["headers"] if not each[0].startswith(b"content-")]
        if message["type"] == "http.response.body" and self._is_refusal:
            message["body"] = b""
        await self._send(message)


def _is_preflight(scope: Scope) -> bool:
    return any(name == b"access-control-request-method" for name, _ in scope["headers"])


def _allowing_head(send: Send) -> Send:
    async def told(message: Message) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [
                (name, _with_head(value)) if name == b"allow" else (name, value) for name, value in message["headers"]
            ]
        await send(message)

    return told


def _with_head(allowed: bytes) -> bytes:
    methods = {each.strip() for each in allowed.split(b",")}
    return b", ".join(sorted(methods | ({b"HEAD"} if b"GET" in methods else set())))
