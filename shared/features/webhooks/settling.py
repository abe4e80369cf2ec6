"""Waiting deliveries follow the state of their endpoint: they are held, released, or given up, a page at a time. The
endpoint is locked."""

from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.features.webhooks import operations
from windlass.shared.features.webhooks.rules import TEST
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.rows import WebhookRow
from windlass.shared.webhook_states import EndpointState

PAGE = 200
"""To cancel a task takes about 2 ms, and a busy machine ten times as long."""
DELETED = "deleted"
AGAIN = "settle"
"""The outbox row that continues with the next page, or that settles the deliveries again."""

WAITS = "('blocked', 'queued', 'retrying')"


class _Delivery(Record):
    task_id: UUID
    reason: str | None
    is_held: bool


async def settle(db: Database, row: WebhookRow) -> None:
    """Of an enabled endpoint all deliveries are released. Of a failing one the oldest is, and all others are held. Of
    a disabled one, or of one that is gone, all are held, except the oldest while the endpoint is probed. What was given
    up is cancelled."""
    if row.deleted_at is not None:
        await give_up(db, row.webhook_id, DELETED)
    page = await fetch(
        db,
        _Delivery,
        f"""
        WITH oldest AS MATERIALIZED (
            SELECT d.delivery_id FROM deliveries d
            CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = d.task_id OFFSET 0) AS t
            WHERE d.webhook_id = $1 AND d.state = 'waiting' AND d.reason IS NULL
              AND (t.status IN {WAITS} OR t.status = 'running')
            ORDER BY d.delivery_id LIMIT 1
        )
        SELECT d.task_id, d.reason, '{operations.HOLD}' = ANY (t.held) AS is_held FROM deliveries d
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = d.task_id OFFSET 0) AS t
        WHERE d.webhook_id = $1 AND d.state = 'waiting' AND t.status IN {WAITS}
          AND (d.reason IS NOT NULL OR ('{operations.HOLD}' = ANY (t.held)) = (
              $2 OR d.type = '{TEST}' OR ($3 AND d.delivery_id = (SELECT o.delivery_id FROM oldest o))))
        ORDER BY d.delivery_id LIMIT {PAGE}
        """,  # noqa: S608 - constants
        row.webhook_id,
        row.state == EndpointState.ENABLED,
        row.state == EndpointState.FAILING or row.probing,
    )
    if not page:
        return
    waiting = set(await operations.lock_waiting(db, [each.task_id for each in page]))
    page = [each for each in page if each.task_id in waiting]
    changed = 0
    given_up: dict[str, list[UUID]] = {}
    for each in page:
        if each.reason is not None:
            given_up.setdefault(each.reason, []).append(each.task_id)
    for reason, task_ids in given_up.items():
        changed += await operations.cancel(db, task_ids, reason)
    if released := [each.task_id for each in page if each.reason is None and each.is_held]:
        changed += await operations.release(db, released)
    if held := [each.task_id for each in page if each.reason is None and not each.is_held]:
        changed += await operations.hold(db, held)
    if len(page) == PAGE and changed:
        await again(db, row.webhook_id)


async def again(db: Database, webhook_id: UUID) -> None:
    await db.execute(f"SELECT {named('write_event')}('delivery', $1, $2)", webhook_id, AGAIN)


async def give_up(
    db: Database, webhook_id: UUID, reason: str, *, except_newest: int = 0, older_than_days: int | None = None
) -> None:
    """Marks waiting deliveries, or those beyond the newest ones and those that are too old: they are cancelled when the
    endpoint is settled. A delivery that is being sent is left alone. Each can be sent again."""
    await db.execute(
        f"""
        UPDATE deliveries SET reason = $2 WHERE delivery_id = ANY (ARRAY(
            SELECT d.delivery_id FROM (
                SELECT w.*, row_number() OVER (ORDER BY w.delivery_id DESC) AS place FROM deliveries w
                WHERE w.webhook_id = $1 AND w.state = 'waiting'
            ) AS d
            CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = d.task_id OFFSET 0) AS t
            WHERE t.status IN {WAITS} AND d.reason IS NULL
              AND (d.place > $3 OR d.created_at < clock_timestamp() - make_interval(days => $4))))
        """,  # noqa: S608 - constants
        webhook_id,
        reason,
        except_newest,
        older_than_days,
    )
