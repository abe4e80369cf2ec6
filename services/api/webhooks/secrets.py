"""Secrets of endpoints: made up here, shown once, and stored sealed."""

import base64
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from windlass.shared.db import Database
from windlass.shared.sealing import WEBHOOK_SECRETS, seal
from windlass.shared.store.access import secrets as server_secrets
from windlass.shared.store.tasks import Submission

SECRET_BYTES = 32


@dataclass(frozen=True)
class Sealed:
    """A new secret, as its owner gets to see it once, and as it is stored."""

    webhook_id: UUID
    shown: str
    stored: bytes


class EndpointSecrets:
    """One for each process: what they are sealed with is asked for once."""

    def __init__(self, pool: Database) -> None:
        self._pool = pool
        self._key: bytes | None = None

    async def new(self, webhook_id: UUID) -> Sealed:
        if self._key is None:
            self._key = await server_secrets.ensure(self._pool, WEBHOOK_SECRETS)
        shown = f"whsec_{base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()}"
        return Sealed(webhook_id, shown, seal(self._key, shown, webhook_id))

    async def with_endpoints(
        self, submissions: Sequence[Submission], owner: str
    ) -> tuple[list[Submission], dict[UUID, str]]:
        """Those that name a url with what an endpoint of the submitter's is made of, one for each url, and by its id
        the secret: shown if it was made."""
        made: dict[str, Sealed] = {}
        completed = []
        for each in submissions:
            if each.webhook_url is None:
                completed.append(each)
                continue
            new = made[each.webhook_url] = made.get(each.webhook_url) or await self.new(uuid7())
            offered = {"new_webhook_id": new.webhook_id, "new_webhook_secret": new.stored.hex()}
            completed.append(msgspec.structs.replace(each, webhook_owner=owner, **offered))
        return completed, {each.webhook_id: each.shown for each in made.values()}
