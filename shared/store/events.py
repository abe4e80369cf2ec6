"""A task's history, read in pages from the last `seq` that the reader has seen."""

from collections.abc import Sequence
from uuid import UUID

from shared.db import Database, Row
from shared.phrases import FINISHED


async def page(
    db: Database, task_id: UUID, *, after: int, most_rows: int, most_bytes: int, types: Sequence[str] | None = None
) -> list[Row]:
    """The next events, up to so many, or fewer once they hold so many bytes; `bytes` counts them up to each row.

    `seq` has no gaps: the range says how far to read even where the planner would sort a long history before its limit.
    """
    return await db.fetch(
        """
        SELECT seq, type, at, attempt, data, bytes FROM (
            SELECT *, sum(size) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS bytes FROM (
                SELECT seq, type, at, attempt, data, pg_column_size(data) AS size FROM task_events
                WHERE task_id = $1 AND ($3::text[] IS NULL OR type = ANY ($3))
                  AND seq > $2 AND seq <= CASE WHEN $3::text[] IS NULL THEN $2::bigint + $4 ELSE 2147483647 END
                ORDER BY seq LIMIT $4
            ) AS measured
        ) AS summed
        WHERE bytes - size < $5 ORDER BY seq
        """,
        task_id,
        after,
        types,
        most_rows,
        most_bytes,
    )


PRESENT_STATE = f"""
    t.status, t.last_seq,
    CASE WHEN e.seq = t.last_seq AND {FINISHED} THEN t.result END AS result,
    CASE WHEN e.seq = t.last_seq AND {FINISHED} THEN t.error END AS error
"""
"""An event's task as it is now; the event that made this state carries what the task ended in."""


async def follow(db: Database, task_id: UUID, *, after: int, most_rows: int, most_bytes: int) -> list[Row]:
    """The same page, each event with its task's present state.

    One statement sees one moment. Read apart, a state older than the events would take an end for one of an earlier
    life, and a newer one would close a stream over events that it has not told. Where there is nothing new, the one
    row that comes back has no `seq`.
    """
    return await db.fetch(
        f"""
        SELECT e.seq, e.type, e.at, e.attempt, e.data, {PRESENT_STATE}
        FROM tasks t LEFT JOIN LATERAL (
            SELECT *, sum(size) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS bytes FROM (
                SELECT seq, type, at, attempt, data, pg_column_size(data) AS size FROM task_events
                WHERE task_id = $1 AND seq > $2 AND seq <= $2::bigint + $3
            ) AS measured
        ) AS e ON e.bytes - e.size < $4
        WHERE t.task_id = $1 ORDER BY e.seq
        """,  # noqa: S608 - a constant
        task_id,
        after,
        most_rows,
        most_bytes,
    )


async def state(db: Database, task_id: UUID) -> Row | None:
    """`user_id, status, last_seq`: whether there is something to read, and for whom."""
    return await db.fetchrow("SELECT user_id, status, last_seq FROM tasks WHERE task_id = $1", task_id)


async def newest(db: Database, task_ids: Sequence[UUID]) -> dict[UUID, int]:
    """The last `seq` of each task: one question for all the streams of a process."""
    rows = await db.fetch("SELECT task_id, last_seq FROM tasks WHERE task_id = ANY ($1)", list(task_ids))
    return {row["task_id"]: row["last_seq"] for row in rows}
