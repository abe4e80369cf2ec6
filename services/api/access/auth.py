"""Who asks: `Authorization: Bearer wl_<id>_<secret>`, or a browser's session; and what that key's role allows."""

from dataclasses import dataclass, field
from typing import Any

from litestar.connection import ASGIConnection
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult
from litestar.types import Receive, Scope, Send

from windlass.services.api.access.session_cookies import (
    has_cookies,
    refuse_other_pages,
    renew,
    sending_renewed,
    session_secret,
)
from windlass.services.api.access.stream_tokens import key_behind_token
from windlass.services.api.access.throttle import client_address
from windlass.services.api.http.errors import Problem
from windlass.services.api.media.links import opened_by_url

TOO_MANY_KEYS = "too many keys that do not open came from your address; try again in {seconds} s, or with a valid key"


@dataclass(frozen=True)
class Caller:
    """The owner of the key that came with the request."""

    key_id: str
    role: str
    user_id: str
    until: float | None = field(default=None, compare=False)
    """When the key expires, by this process's monotonic clock; none when it never does."""
    as_of: int = field(default=0, compare=False)
    """How many changes of keys the keyring had heard of when it looked at this one."""
    session_hash: bytes | None = field(default=None, compare=False)
    """Of the session that stood for the key; none when the key itself came."""

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"

    @property
    def sees_everything(self) -> bool:
        return self.role in {"admin", "viewer"}

    @property
    def own(self) -> str | None:
        """Whose tasks alone this key reaches; none when it reaches everybody's."""
        return None if self.sees_everything else self.user_id

    def may_see(self, user_id: str) -> bool:
        return self.sees_everything or self.user_id == user_id


class Authentication(AbstractAuthenticationMiddleware):
    """Refuses what comes without a valid key or session, except where a handler opts out with `public=True`."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await super().__call__(scope, receive, sending_renewed(scope, send) if has_cookies(scope) else send)

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        key = bearer(connection.headers.get("authorization", ""))
        caller = await (connection.app.state.keyring.open(key) if key else caller_by_token(connection))
        if caller is not None or (not key and await opened_by_url(connection)):
            return AuthenticationResult(user=caller, auth=None)
        # A cookie comes by itself with everything that a browser asks for: what was sent on purpose goes before it.
        if not key and (caller := await caller_by_session(connection)) is not None:
            return AuthenticationResult(user=caller, auth=None)
        # Only now: a valid key is never held up by what others do from the same address.
        if key:
            count_failure(connection, TOO_MANY_KEYS)
        raise Problem(
            401,
            "unauthorized",
            "send a valid key in the header Authorization, written `Bearer wl_…`, or sign in at /",
            headers={"WWW-Authenticate": "Bearer"},
        )


async def caller_by_token(connection: ASGIConnection[Any, Any, Any, Any]) -> Caller | None:
    """A revoked key takes its tokens along."""
    key_id = await key_behind_token(connection)
    return None if key_id is None else await connection.app.state.keyring.vouched_for(key_id)


async def caller_by_session(connection: ASGIConnection[Any, Any, Any, Any]) -> Caller | None:
    """Whose session's cookie came along, if it may do what is asked; a session that goes on is renewed."""
    secret = session_secret(connection)
    opened = await connection.app.state.keyring.open_session(secret) if secret else None
    if secret is None or opened is None:
        return None
    refuse_other_pages(connection)
    caller, renewed = opened
    if renewed is not None:
        renew(connection, secret, secure=renewed.secure)
    return caller  # type: ignore[no-any-return]


def count_failure(connection: ASGIConnection[Any, Any, Any, Any], too_many: str) -> None:
    """Notes an attempt that opened nothing; who made too many of them is told how long to wait."""
    seconds = connection.app.state.throttle.failed(address_of(connection))
    if seconds is not None:
        headers = {"Retry-After": str(seconds)}
        raise Problem(429, "too-many-attempts", too_many.format(seconds=seconds), headers=headers)


def bearer(header: str) -> str | None:
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def address_of(connection: ASGIConnection[Any, Any, Any, Any]) -> str:
    peer = connection.client.host if connection.client else None
    trusted = connection.app.state.settings.trusted_networks()
    return client_address(peer, connection.headers.getall("x-forwarded-for", []), trusted)


def require_admin(caller: Caller) -> None:
    if not caller.is_admin:
        raise Problem(403, "forbidden", "this is for an admin's key")


def require_overview(caller: Caller) -> None:
    if not caller.sees_everything:
        raise Problem(403, "forbidden", "figures over all users are for viewers and admins")


def require_writer(caller: Caller) -> None:
    if caller.role == "viewer":
        raise Problem(403, "forbidden", "a viewer's key reads everything and writes nothing")
