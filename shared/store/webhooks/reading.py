"""Endpoints and deliveries as they are read."""

from datetime import datetime
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import DeliveryRow, DeliveryTryRow, WebhookRow

WEBHOOK = """
    SELECT w.*, (
        SELECT y.at FROM delivery_tries y WHERE y.webhook_id = w.webhook_id AND y.delivered
        ORDER BY y.try_id DESC LIMIT 1
    ) AS last_success_at, CASE WHEN w.state = 'enabled' THEN 0 ELSE (
        SELECT count(*) FROM deliveries d WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting')::int END AS held
    FROM webhooks w
"""
TOLD_USER = "CASE d.type WHEN 'webhook.test' THEN w.user_id ELSE b.body::jsonb #>> '{data,user_id}' END"
"""The user whose object the event is about; null for an event about no user's object."""

DELIVERY = f"""
    SELECT d.*, CASE WHEN d.state = 'waiting' AND 'endpoint' = ANY (t.held) THEN 'held' ELSE d.state END AS shown_state,
           CASE WHEN d.state = 'waiting' AND cardinality(t.held) = 0 AND t.status <> 'running'
                THEN t.available_at END AS next_at,
           w.user_id, w.url, b.body, {TOLD_USER} AS told_user
    FROM deliveries d JOIN webhooks w USING (webhook_id) JOIN webhook_bodies b USING (body_id)
    JOIN tasks t ON t.task_id = d.task_id
"""  # noqa: S608


class WebhookRead(WebhookRow):
    """With what its tries say."""

    last_success_at: datetime | None
    held: int
    """How many deliveries wait until it is enabled again."""


class DeliveryRead(DeliveryRow):
    """With what its task and its endpoint say."""

    shown_state: str
    next_at: datetime | None
    user_id: str
    url: str
    body: str
    told_user: str | None
    """Whose the thing is that it tells of; None where it is no user's."""


class Endpoints(Record):
    """How many endpoints are in a state, how many of those are there because they failed for days, and how many
    deliveries wait for them."""

    state: str
    endpoints: int
    given_up: int
    waiting: int


async def get(db: Database, webhook_id: UUID) -> WebhookRead | None:
    return await fetchrow(db, WebhookRead, f"{WEBHOOK} WHERE w.webhook_id = $1 AND w.deleted_at IS NULL", webhook_id)


async def newest(db: Database, *, owner: str | None, before: UUID | None = None, limit: int = 50) -> list[WebhookRead]:
    query = f"""
        {WEBHOOK} WHERE w.deleted_at IS NULL AND ($1::text IS NULL OR w.user_id = $1)
          AND ($2::uuid IS NULL OR w.webhook_id < $2)
        ORDER BY w.webhook_id DESC LIMIT $3
    """
    return await fetch(db, WebhookRead, query, owner, before, limit)


async def deliveries(
    db: Database,
    webhook_id: UUID,
    *,
    told_user: str | None = None,
    state: str | None = None,
    before: UUID | None = None,
    limit: int = 50,
) -> list[DeliveryRead]:
    """Newest first; with `told_user` only those that tell of this user's things."""
    query = f"""
        {DELIVERY} WHERE d.webhook_id = $1 AND ($2::uuid IS NULL OR d.delivery_id < $2)
          AND CASE $3::text WHEN 'held' THEN d.state = 'waiting' AND 'endpoint' = ANY (t.held)
                            WHEN 'waiting' THEN d.state = 'waiting' AND 'endpoint' <> ALL (t.held)
                            ELSE $3 IS NULL OR d.state = $3 END
          AND ($5::text IS NULL OR {TOLD_USER} = $5)
        ORDER BY d.delivery_id DESC LIMIT $4
    """
    return await fetch(db, DeliveryRead, query, webhook_id, before, state, limit, told_user)


async def delivery(db: Database, delivery_id: UUID) -> DeliveryRead | None:
    return await fetchrow(db, DeliveryRead, f"{DELIVERY} WHERE d.delivery_id = $1", delivery_id)


async def tries(db: Database, delivery_id: UUID) -> list[DeliveryTryRow]:
    query = "SELECT * FROM delivery_tries WHERE delivery_id = $1 ORDER BY try_id"
    return await fetch(db, DeliveryTryRow, query, delivery_id)


async def count_endpoints(db: Database) -> list[Endpoints]:
    return await fetch(
        db,
        Endpoints,
        """
        SELECT w.state, count(*)::int AS endpoints, coalesce(sum(waiting.number), 0)::int AS waiting,
               count(*) FILTER (WHERE w.state = 'disabled' AND w.failing_since IS NOT NULL)::int AS given_up
        FROM webhooks w LEFT JOIN (
            SELECT d.webhook_id, count(*) AS number FROM deliveries d WHERE d.state = 'waiting' GROUP BY d.webhook_id
        ) AS waiting USING (webhook_id)
        WHERE w.deleted_at IS NULL GROUP BY w.state
        """,
    )
