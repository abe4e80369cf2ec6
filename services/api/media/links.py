"""Urls that show media without a key: made, made anew when a task is shown, and checked when they come back."""

import time
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from litestar.connection import ASGIConnection

from windlass.services.api.http.errors import Problem
from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.signing import MEDIA_URLS, media_expiry, media_url
from windlass.shared.store.access import secrets


class MediaLinks:
    """Knows the secret once it has been read; every api process of a database has the same."""

    def __init__(self, settings: Settings, db: Database) -> None:
        self._settings = settings
        self._db = db
        self._secret: bytes | None = None

    async def secret(self) -> bytes:
        """One question in the life of a process."""
        if self._secret is None:
            self._secret = await secrets.ensure(self._db, MEDIA_URLS)
        return self._secret

    async def url(self, content_id: UUID) -> str:
        return media_url(self._settings, await self.secret(), content_id, datetime.now(UTC))

    def renewed(self, actor: str, result: Any) -> Any:
        """A result as it is shown. It is kept for ever and its urls are not: they are signed again each time.

        Only where the actor is our own: in another's result anybody could name a foreign file, and have it signed. In
        the moment before the secret is known a result goes out as it was stored.
        """
        if actor != "media" or self._secret is None or not isinstance(result, dict):
            return result
        now = datetime.now(UTC)
        try:
            content_ids = [UUID(each) for each in result["content_ids"]]
        except (KeyError, TypeError, ValueError, AttributeError):
            return result
        return {**result, "urls": [media_url(self._settings, self._secret, each, now) for each in content_ids]}

    async def opens(self, content_id: UUID, expires: str, signature: str) -> bool:
        """Whether such a url shows the file now; a problem says why one of ours does no longer."""
        until = media_expiry(await self.secret(), content_id, expires, signature)
        if until is not None and until <= time.time():
            detail = "this url has expired; read its task or its workflow run again for a new one, or send a key"
            raise Problem(403, "url-expired", detail)
        return until is not None


async def opened_by_url(connection: ASGIConnection[Any, Any, Any, Any]) -> bool:
    """Whether a signed url was used, on the one kind of path that has them; one that is not ours is refused."""
    expires, signature = (connection.query_params.get(name) for name in ("expires", "signature"))
    if not connection.route_handler.opt.get("signed_url") or (expires is None and signature is None):
        return False
    links: MediaLinks = connection.app.state.media_links
    content_id = connection.path_params["content_id"]
    # A UUID can be written in several ways; the url was signed in one.
    is_as_made = connection.scope["path"].endswith(f"/{content_id}")
    if not is_as_made or not await links.opens(content_id, expires or "", signature or ""):
        raise Problem(403, "invalid-signature", "this url was not made here, or has been changed since")
    return True
