"""What is done to endpoints: made, changed, enabled, disabled, deleted, tested, and looked after."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.functions import named

CHANNEL = "windlass_endpoints"
"""Called when the deliveries of an endpoint could not all be held, released or given up at once."""

ROTATION_SECONDS = 86400
"""So long the secret before the last one signs as well."""
RECHECKED_AT_ONCE = 200


@dataclass(frozen=True, kw_only=True)
class NewWebhook:
    """An endpoint to be, with its secret sealed."""

    webhook_id: UUID
    user_id: str
    url: str
    secret: bytes
    events: tuple[str, ...] = ()
    filter: Mapping[str, Any] = field(default_factory=dict)
    scope: str = "own"
    description: str | None = None


async def create(db: Database, webhook: NewWebhook) -> UUID | None:
    """None when its owner has one for that url."""
    made: UUID | None = await db.fetchval(
        """
        INSERT INTO webhooks (webhook_id, user_id, url, events, filter, scope, description, secret)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
        ON CONFLICT (user_id, url) WHERE deleted_at IS NULL DO NOTHING RETURNING webhook_id
        """,
        webhook.webhook_id, webhook.user_id, webhook.url, list(webhook.events), dict(webhook.filter), webhook.scope,
        webhook.description, webhook.secret,
    )  # fmt: skip
    return made


async def alter(db: Database, webhook_id: UUID, changes: Mapping[str, Any]) -> bool:
    """Only what is there changes; false when its owner has another for the new url."""
    changed: UUID | None = await db.fetchval(
        """
        UPDATE webhooks w SET
            url = coalesce($2, w.url), events = coalesce($3, w.events), filter = coalesce($4, w.filter),
            scope = coalesce($5, w.scope), description = CASE WHEN $7 THEN $6 ELSE w.description END,
            updated_at = clock_timestamp()
        WHERE w.webhook_id = $1 AND w.deleted_at IS NULL AND NOT EXISTS (
            SELECT 1 FROM webhooks o
            WHERE o.user_id = w.user_id AND o.url = $2 AND o.deleted_at IS NULL AND o.webhook_id <> w.webhook_id)
        RETURNING w.webhook_id
        """,
        webhook_id, *(changes.get(name) for name in ("url", "events", "filter", "scope", "description")),
        "description" in changes,
    )  # fmt: skip
    return changed is not None


async def rotate(db: Database, webhook_id: UUID, secret: bytes) -> None:
    """The secret until now signs as well for a day."""
    await db.execute(
        """
        UPDATE webhooks SET
            previous_secret = secret, previous_until = clock_timestamp() + make_interval(secs => $3), secret = $2,
            updated_at = clock_timestamp()
        WHERE webhook_id = $1
        """,
        webhook_id,
        secret,
        ROTATION_SECONDS,
    )


async def enable(db: Database, webhook_id: UUID, *, replay: bool) -> None:
    """What is held goes on, or is given up."""
    await db.execute(f"SELECT {named('enable_endpoint')}($1, $2)", webhook_id, replay)


async def disable(db: Database, webhook_id: UUID) -> None:
    await db.execute(f"SELECT {named('disable_endpoint')}($1)", webhook_id)


async def delete(db: Database, webhook_id: UUID) -> None:
    """It and its deliveries are kept; what waits is given up."""
    await db.execute(f"SELECT {named('delete_endpoint')}($1)", webhook_id)


async def test(db: Database, webhook_id: UUID) -> UUID:
    """Sends it a delivery that says nothing else, and returns its id."""
    delivery_id: UUID = await db.fetchval(f"SELECT {named('test_endpoint')}($1)", webhook_id)
    return delivery_id


async def look_after(db: Database) -> UUID | None:
    """One endpoint that somebody has to see to; none where there is nothing to do."""
    settled: UUID | None = await db.fetchval(f"SELECT {named('look_after_endpoint')}()")
    return settled


async def recheck(db: Database) -> int:
    """How many endpoints had deliveries that stood still though they should not; they go on now. Those whose owner has
    no right to them any more are disabled."""
    found: int = await db.fetchval(f"SELECT {named('recheck_endpoints')}($1)", RECHECKED_AT_ONCE)
    return found


async def give_up_held(db: Database, *, held_most: int, held_days: int) -> int:
    """Fails a page of the deliveries that a disabled endpoint holds beyond this number or age; returns how many."""
    found: int = await db.fetchval(f"SELECT {named('give_up_held')}($1, $2)", held_most, held_days)
    return found
