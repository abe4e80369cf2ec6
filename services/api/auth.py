"""Who asks: `Authorization: Bearer wl_<id>_<secret>`, looked up once per request."""

from dataclasses import dataclass
from typing import Any

from litestar.connection import ASGIConnection
from litestar.middleware import AbstractAuthenticationMiddleware, AuthenticationResult

from services.api.errors import Problem
from shared.store import keys


@dataclass(frozen=True)
class Caller:
    """The owner of the key that came with the request."""

    key_id: str
    role: str
    user_id: str

    @property
    def is_admin(self) -> bool:
        return self.role == "admin"

    @property
    def sees_everything(self) -> bool:
        return self.role in {"admin", "viewer"}

    def may_see(self, user_id: str) -> bool:
        return self.sees_everything or self.user_id == user_id


class Authentication(AbstractAuthenticationMiddleware):
    """Refuses what comes without a valid key, except where a handler opts out with `public=True`."""

    async def authenticate_request(self, connection: ASGIConnection[Any, Any, Any, Any]) -> AuthenticationResult:
        key = bearer(connection.headers.get("authorization", ""))
        row = await keys.authenticate(connection.app.state.pool, key) if key else None
        if row is None:
            raise Problem(
                401,
                "unauthorized",
                "send a valid key: Authorization: Bearer wl_…",
                headers={"WWW-Authenticate": "Bearer"},
            )
        return AuthenticationResult(user=Caller(row["key_id"], row["role"], row["user_id"]), auth=None)


def bearer(header: str) -> str | None:
    scheme, _, key = header.partition(" ")
    return key.strip() if scheme.lower() == "bearer" else None


def require_admin(caller: Caller) -> None:
    if not caller.is_admin:
        raise Problem(403, "forbidden", "this is for an admin's key")


def require_overview(caller: Caller) -> None:
    if not caller.sees_everything:
        raise Problem(403, "forbidden", "figures over all users are for viewers and admins")


def require_writer(caller: Caller) -> None:
    if caller.role == "viewer":
        raise Problem(403, "forbidden", "a viewer's key reads everything and writes nothing")
