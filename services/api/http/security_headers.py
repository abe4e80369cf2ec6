"""What every answer tells browsers and caches, unless it says otherwise itself."""

from litestar.enums import ScopeType
from litestar.types import ASGIApp, Message, Receive, Scope, Send

CAUTION = (
    (b"cache-control", b"no-store"),
    (b"content-security-policy", b"default-src 'none'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
)
"""It is somebody's data: nobody keeps it, takes it for a page, or runs anything of it."""


def cautious(app: ASGIApp, *, build: str) -> ASGIApp:
    """Around everything else: also what no route takes is answered so. `build` tells a page of a newer one."""
    always = (*CAUTION, (b"windlass-build", build.encode()))

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_cautiously(message: Message) -> None:
            if message["type"] == "http.response.start":
                said = list(message["headers"])
                names = {name for name, _ in said}
                message["headers"] = [*said, *(each for each in always if each[0] not in names)]
            await send(message)

        await app(scope, receive, send_cautiously if scope["type"] == ScopeType.HTTP else send)

    return answer
