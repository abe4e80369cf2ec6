"""What became of deliveries: the moves of the tasks that carry them, and the tries that workers recorded."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.features.webhooks.judging import FAILURES_IN_A_ROW
from windlass.shared.store.outbox import Move
from windlass.shared.store.record import Record, fetch
from windlass.shared.webhook_states import DeliveryState

LONGEST_REASON = 300
MOST_TRIES = 1000

STATES = {
    "completed": DeliveryState.DELIVERED,
    "dead": DeliveryState.FAILED,
    "cancelled": DeliveryState.FAILED,
}


class Outcome(Record):
    """A move of a task that carries a delivery. A task that was superseded by another carries none."""

    delivery_id: UUID
    status: str
    at: datetime
    error: str | None
    try_id: int | None
    """The try of the move's attempt, if a request was made."""


class Tried(Record):
    """One try of an endpoint."""

    at: datetime
    delivered: bool
    gone: bool


async def of_moves(db: Database, moves: Sequence[Move]) -> list[Outcome]:
    """In the order of each task's history."""
    of_tasks = [move for move in moves if move.is_of_task]
    if not of_tasks:
        return []
    return await fetch(
        db,
        Outcome,
        """
        SELECT d.delivery_id, m.status, m.at, coalesce(e.data -> 'error', t.error) ->> 'message' AS error, (
                   SELECT y.try_id FROM delivery_tries y WHERE y.task_id = m.task_id AND y.attempt = e.attempt
               ) AS try_id
        FROM unnest($1::uuid[], $2::int[], $3::text[], $4::timestamptz[]) AS m(task_id, seq, status, at)
        CROSS JOIN LATERAL (SELECT * FROM deliveries WHERE deliveries.task_id = m.task_id OFFSET 0) AS d
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
        LEFT JOIN task_events e ON e.task_id = m.task_id AND e.seq = m.seq
        ORDER BY m.task_id, m.seq
        """,
        [move.task_id for move in of_tasks],
        [move.seq for move in of_tasks],
        [move.status for move in of_tasks],
        [move.at for move in of_tasks],
    )


async def record(db: Database, outcomes: Sequence[Outcome]) -> None:
    """The last move of a task decides. A revived task makes its delivery wait again."""
    last = {each.delivery_id: each for each in outcomes}
    if not last:
        return
    states = [STATES.get(each.status, DeliveryState.WAITING) for each in last.values()]
    await db.execute(
        f"""
        UPDATE deliveries d SET
            state = o.state, delivered_at = CASE o.state WHEN 'delivered' THEN o.at END,
            reason = CASE o.status WHEN 'dead' THEN left(o.error, {LONGEST_REASON})
                                   WHEN 'cancelled' THEN coalesce(d.reason, 'cancelled') END
        FROM unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::text[])
            AS o(delivery_id, state, status, at, error)
        WHERE d.delivery_id = o.delivery_id AND (o.state <> 'waiting' OR d.state <> 'waiting')
        """,  # noqa: S608 - constants
        list(last),
        [state.value for state in states],
        [each.status for each in last.values()],
        [each.at for each in last.values()],
        [each.error for each in last.values()],
    )


async def tries_since(db: Database, webhook_id: UUID, outcomes: Sequence[Outcome]) -> list[Tried]:
    """The tries of these outcomes, those that were recorded since, and as many before as a judgement needs. None if no
    request was made."""
    first = min((each.try_id for each in outcomes if each.try_id is not None), default=None)
    if first is None:
        return []
    return await fetch(
        db,
        Tried,
        f"""
        SELECT y.at, y.delivered, y.gone FROM delivery_tries y
        WHERE y.webhook_id = $1 AND y.try_id >= coalesce((
            SELECT e.try_id FROM delivery_tries e WHERE e.webhook_id = $1 AND e.try_id <= $2
            ORDER BY e.try_id DESC OFFSET {FAILURES_IN_A_ROW - 1} LIMIT 1), 0)
        ORDER BY y.try_id LIMIT {MOST_TRIES}
        """,  # noqa: S608 - constants
        webhook_id,
        first,
    )
