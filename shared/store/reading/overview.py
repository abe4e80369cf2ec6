"""What has ended since somebody last looked: how, of what, and what it has cost."""

from datetime import datetime

from windlass.shared.db import Database
from windlass.shared.store.record import Record, fetch

LOOKED_AT = 100_000
"""Of the latest ends, so many are counted; who was away for longer hears from when on."""


class Ended(Record):
    """Tasks that ended in one way, of one kind of error where they died."""

    status: str
    error_type: str | None
    tasks: int
    cost_usd: float | None
    first_at: datetime
    counted: int


async def ended_since(
    db: Database, since: datetime, *, owner: str | None, at_most: int = LOOKED_AT
) -> tuple[list[Ended], datetime]:
    """Each way with its number, and from when on they were counted: later than `since` where there are too many."""
    rows = await fetch(
        db,
        Ended,
        """
        WITH latest AS (
            SELECT t.status, t.completed_at, t.usage,
                   CASE t.status WHEN 'dead' THEN t.error ->> 'type' END AS error_type
            FROM tasks t
            WHERE t.status IN ('completed', 'dead', 'cancelled') AND t.completed_at > $1
              AND ($2::text IS NULL OR t.user_id = $2)
            ORDER BY t.completed_at DESC LIMIT $3
        )
        SELECT status, error_type, count(*) AS tasks, sum((usage ->> 'cost_usd')::float) AS cost_usd,
               min(completed_at) AS first_at, (sum(count(*)) OVER ())::bigint AS counted
        FROM latest GROUP BY status, error_type ORDER BY count(*) DESC, error_type
        """,
        since,
        owner,
        at_most,
    )
    is_cut = bool(rows) and rows[0].counted >= at_most
    return rows, min(row.first_at for row in rows) if is_cut else since
