"""What users do to endpoints: they create, change, enable, disable and delete them, test them, and send deliveries
again."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from windlass.shared.db import Database
from windlass.shared.features.transactions import Session, repeatedly
from windlass.shared.features.webhooks import operations, writing
from windlass.shared.features.webhooks.listening import listen
from windlass.shared.features.webhooks.rules import TEST, Event, is_held
from windlass.shared.features.webhooks.turn import Turn, in_turn
from windlass.shared.store.record import Record, fetchrow
from windlass.shared.webhook_states import EndpointState

ROTATION_SECONDS = 86400
"""For so long the previous secret signs as well."""


@dataclass(frozen=True, kw_only=True)
class NewWebhook:
    """An endpoint to create, with its secret sealed."""

    webhook_id: UUID
    user_id: str
    url: str
    secret: bytes
    events: tuple[str, ...] = ()
    filter: Mapping[str, Any] = field(default_factory=dict)
    scope: str = "own"
    description: str | None = None


class _Delivery(Record):
    delivery_id: UUID
    task_id: UUID
    type: str
    status: str
    has_older: bool


async def create(db: Database, webhook: NewWebhook) -> UUID | None:
    """None if its owner has an endpoint for that url."""

    async def act(session: Session) -> UUID | None:
        if webhook.events:
            await listen(session)
        created: UUID | None = await session.fetchval(
            """
            INSERT INTO webhooks (webhook_id, user_id, url, events, filter, scope, description, secret)
            VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
            ON CONFLICT (user_id, url) WHERE deleted_at IS NULL DO NOTHING RETURNING webhook_id
            """,
            webhook.webhook_id, webhook.user_id, webhook.url, list(webhook.events), dict(webhook.filter), webhook.scope,
            webhook.description, webhook.secret,
        )  # fmt: skip
        return created

    return await repeatedly(db, act)


async def alter(db: Database, webhook_id: UUID, changes: Mapping[str, Any]) -> bool:
    """Changes only the fields that are given. False if its owner has another endpoint for the new url."""

    async def act(session: Session) -> bool:
        if changes.get("events"):
            await listen(session)
        changed: UUID | None = await session.fetchval(
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

    return await repeatedly(db, act)


async def rotate(db: Database, webhook_id: UUID, secret: bytes) -> None:
    """The previous secret signs as well for a day."""
    query = """
        UPDATE webhooks SET
            previous_secret = secret, previous_until = clock_timestamp() + make_interval(secs => $3), secret = $2,
            updated_at = clock_timestamp()
        WHERE webhook_id = $1
    """
    await repeatedly(db, lambda session: session.execute(query, webhook_id, secret, ROTATION_SECONDS))


async def enable(db: Database, webhook_id: UUID, *, replay: bool) -> None:
    """Held deliveries are sent, or given up."""

    async def act(turn: Turn) -> None:
        if turn.row.state != EndpointState.ENABLED:
            await turn.enable()
            if not replay:
                await turn.give_up("not replayed")
        await turn.settle()

    await in_turn(db, webhook_id, act)


async def disable(db: Database, webhook_id: UUID) -> None:
    """Deliveries are held until it is enabled."""

    async def act(turn: Turn) -> None:
        if turn.row.state != EndpointState.DISABLED or turn.row.probe_at is not None:
            await turn.disable("by hand")
        await turn.settle()

    await in_turn(db, webhook_id, act)


async def delete(db: Database, webhook_id: UUID) -> None:
    """The endpoint and its deliveries are kept. Waiting deliveries are given up."""

    async def act(turn: Turn) -> None:
        if turn.row.deleted_at is None:
            await turn.delete()
        await turn.settle()

    await in_turn(db, webhook_id, act)


async def test(db: Database, webhook_id: UUID) -> UUID | None:
    """Sends `webhook.test`, whatever the endpoint's state is, and returns the delivery's id."""

    async def act(turn: Turn) -> UUID:
        row = turn.row
        at: datetime = await turn.db.fetchval("SELECT clock_timestamp()")
        seq = int(at.timestamp() * 1_000_000)
        event = Event(TEST, str(webhook_id), seq, at, row.user_id, {}, {"webhook_id": webhook_id})
        (delivery_id,) = await writing.write(turn.db, [(event, [writing.Receiver(webhook_id, row.user_id, row.state)])])
        return delivery_id

    return await in_turn(db, webhook_id, act)


async def redeliver(db: Database, delivery_id: UUID) -> str | None:
    """Sends a delivery again, under its id: a new task carries it, and one that still waits is superseded. At a failing
    endpoint it is held while an older one is tried. Returns why it is refused, if it is."""
    webhook_id = await db.fetchval("SELECT webhook_id FROM deliveries WHERE delivery_id = $1", delivery_id)
    return await in_turn(db, webhook_id, lambda turn: _send_again(turn, delivery_id))


async def _send_again(turn: Turn, delivery_id: UUID) -> str | None:
    row = turn.row
    if row.deleted_at is not None:
        return "webhook-deleted"
    if row.state in (EndpointState.DISABLED, EndpointState.GONE):
        return "webhook-disabled"
    # Locked first: no worker claims it between the look and the change.
    lock = """
        SELECT 1 FROM tasks WHERE task_id = (SELECT task_id FROM deliveries WHERE delivery_id = $1) FOR NO KEY UPDATE
    """
    await turn.db.execute(lock, delivery_id)
    found = await fetchrow(
        turn.db,
        _Delivery,
        """
        SELECT d.delivery_id, d.task_id, d.type, t.status, EXISTS (
            SELECT 1 FROM deliveries o
            WHERE o.webhook_id = d.webhook_id AND o.state = 'waiting' AND o.delivery_id < d.delivery_id
        ) AS has_older
        FROM deliveries d JOIN tasks t ON t.task_id = d.task_id WHERE d.delivery_id = $1
        """,
        delivery_id,
    )
    assert found is not None, "deliveries are kept"
    if found.status == "running":
        return "delivery-under-way"
    fresh = uuid7()
    await turn.db.execute(
        "UPDATE deliveries SET task_id = $2, state = 'waiting', delivered_at = NULL, reason = NULL "
        "WHERE delivery_id = $1",
        delivery_id,
        fresh,
    )
    if found.status not in ("completed", "dead", "cancelled"):
        await operations.cancel(turn.db, [found.task_id], "superseded")
    waits = is_held(row.state, found.type, is_oldest=not found.has_older)
    task = writing.carrier(fresh, delivery_id, row.webhook_id, row.user_id, found.type)
    await operations.submit(turn.db, [task], held=[fresh] if waits else [])
    return None
