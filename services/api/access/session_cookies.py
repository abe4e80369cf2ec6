"""The cookie of a session: how it is read and written, and which requests that come with it are our own page's."""

from typing import Any
from urllib.parse import urlsplit

from litestar.connection import ASGIConnection
from litestar.types import Message, Scope, Send

from windlass.services.api.http.errors import Problem
from windlass.shared.store.access.sessions import LIFETIME_SECONDS

NAME = "windlass_session"
SAFE_METHODS = {"GET", "HEAD", "OPTIONS"}
LONGEST = 100

Connection = ASGIConnection[Any, Any, Any, Any]


def has_cookies(scope: Scope) -> bool:
    return any(name == b"cookie" for name, _ in scope["headers"])


def session_secret(connection: Connection) -> str | None:
    """What the cookie says, where there is one and it could be ours. Ours needs no quotes; `http.cookies`, which reads
    them, takes quadratic time for a value that is full of backslashes."""
    for header, value in connection.scope["headers"]:
        for cookie in value.split(b";") if header == b"cookie" else ():
            name, _, secret = cookie.strip().partition(b"=")
            if name == NAME.encode() and 0 < len(secret) <= LONGEST:
                return secret.decode("latin-1")
    return None


def written(secret: str, *, secure: bool) -> str:
    return _cookie(secret, int(LIFETIME_SECONDS), secure=secure)


def erased(*, secure: bool) -> str:
    return _cookie("", 0, secure=secure)


def _cookie(value: str, seconds: int, *, secure: bool) -> str:
    https = "; Secure" if secure else ""
    return f"{NAME}={value}; Max-Age={seconds}; Path=/; HttpOnly; SameSite=Strict{https}"


def comes_by_https(connection: Connection) -> bool:
    """As the browser says; we never speak TLS ourselves. A client that says nothing came as the settings say."""
    origin = connection.headers.get("origin") or connection.app.state.settings.address
    return urlsplit(origin).scheme == "https"


def refuse_other_pages(connection: Connection) -> None:
    """A browser sends the cookie along whoever makes it ask. What changes something has to come from our own page,
    which says so in a header that no page can write, and in a type that no foreign page can send unasked."""
    if connection.scope.get("method") in SAFE_METHODS:
        return
    if not _is_same_origin(connection):
        detail = "with a session, changes are made from the page itself: `Sec-Fetch-Site: same-origin` is missing"
        raise Problem(403, "cross-site-request", f"{detail}; other programs send a key")
    require_type(connection)


def refuse_foreign_sign_in(connection: Connection) -> None:
    """Nobody else's page signs a browser in, as somebody whom its user is not; what is no browser says neither."""
    if _is_same_origin(connection) is False:
        raise Problem(403, "cross-site-request", "another site's page cannot sign you in")
    require_type(connection)


def require_type(connection: Connection) -> None:
    """JSON, or what the handler takes instead: a form, a plain text or a body without a type comes from any page."""
    taken: str = connection.route_handler.opt.get("takes", "application/json")
    said = connection.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not said.startswith(taken):
        detail = f"with a session, changes are made with Content-Type: {taken}, also where there is no body"
        raise Problem(403, "cross-site-request", detail)


def _is_same_origin(connection: Connection) -> bool | None:
    """None when the client says nothing about it."""
    if site := connection.headers.get("sec-fetch-site"):
        return site == "same-origin"
    if origin := connection.headers.get("origin"):
        return origin in _own_origins(connection)
    return None


def _own_origins(connection: Connection) -> set[str]:
    """Where others reach us, and where this request did: a foreign page cannot choose its Host."""
    address = urlsplit(connection.app.state.settings.address)
    host = connection.headers.get("host", "")
    return {f"{address.scheme}://{address.netloc}", f"http://{host}", f"https://{host}"}


def renew(connection: Connection, secret: str, *, secure: bool) -> None:
    """Its answer will say so."""
    connection.scope["renewed_session"] = written(secret, secure=secure)  # type: ignore[typeddict-unknown-key]


def sending_renewed(scope: Scope, send: Send) -> Send:
    """Sends the cookie again where the session has been renewed, so that the browser keeps it as long."""

    async def renewing(message: Message) -> None:
        if message["type"] == "http.response.start" and (cookie := scope.get("renewed_session")):
            message["headers"] = [*message["headers"], (b"set-cookie", str(cookie).encode())]
        await send(message)

    return renewing
