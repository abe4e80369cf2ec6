"""Tokens that open one task's stream while it lives and five minutes more, for browsers, whose EventSource can send no
header."""

import binascii
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from litestar.connection import ASGIConnection

from windlass.shared.db import Database
from windlass.shared.signing import as_bytes, as_text, is_signed, signature
from windlass.shared.store import tasks
from windlass.shared.store.access import secrets

LIFETIME = timedelta(minutes=5)
SECRET_NAME = "stream-tokens"  # noqa: S105 - the name of one


class Grant(msgspec.Struct, frozen=True, array_like=True):
    """What a token says: the owner of a key may read a task's stream by it, until then whatever becomes of the task."""

    task_id: UUID
    key_id: str
    expires_at: datetime


class StreamTokens:
    """Made and checked without being stored: the secret that signs them is the same for all api processes."""

    def __init__(self, pool: Database) -> None:
        self._pool = pool
        self._secret: bytes | None = None

    async def issue(self, task_id: UUID, key_id: str) -> tuple[str, datetime]:
        """A token, and when it ends."""
        grant = Grant(task_id, key_id, datetime.now(UTC) + LIFETIME)
        return await self.sign(grant), grant.expires_at

    async def sign(self, grant: Grant) -> str:
        said = msgspec.json.encode(grant)
        return f"{as_text(said)}.{signature(await self._known_secret(), said)}"

    async def key_behind(self, token: str, task_id: UUID) -> str | None:
        """The id of the key that a token for this task was made with; none when it is not one, or no longer."""
        text, _, claimed = token.partition(".")
        try:
            said = as_bytes(text)
            signed = is_signed(await self._known_secret(), said, claimed)
            grant = msgspec.json.decode(said, type=Grant) if signed else None
        except (UnicodeEncodeError, binascii.Error, msgspec.DecodeError):
            return None
        if grant is None or grant.task_id != task_id:
            return None
        is_good = grant.expires_at > datetime.now(UTC) or await self._goes_on(task_id)
        return grant.key_id if is_good else None

    async def _goes_on(self, task_id: UUID) -> bool:
        """Whether the task lives, or has ended only now: a browser that was asleep reads the end, too."""
        row = await tasks.get(self._pool, task_id)
        if row is None:
            return False
        return row.completed_at is None or row.completed_at + LIFETIME > datetime.now(UTC)

    async def _known_secret(self) -> bytes:
        if self._secret is None:
            self._secret = await secrets.ensure(self._pool, SECRET_NAME)
        return self._secret


async def key_behind_token(connection: ASGIConnection[Any, Any, Any, Any]) -> str | None:
    """Who asks by `?token=`, on the one kind of path that takes it."""
    token = connection.query_params.get("token")
    if not token or not connection.route_handler.opt.get("stream_token"):
        return None
    tokens: StreamTokens = connection.app.state.stream_tokens
    return await tokens.key_behind(token, connection.path_params["task_id"])
