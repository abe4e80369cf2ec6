"""A task's history, read in pages from the last `seq` that the reader has seen."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.sql_fragments import FINISHED
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import TaskEventRow, TaskRow

WRITTEN_SIZE = "greatest(stored, octet_length(data::text))"
"""Bytes of an event's data as JSON. What is stored is compressed, and may be a hundredth of that; but it is known
without reading it, so a page is cut by it first."""

NEXT_SEQ = "(SELECT min(seq)::bigint FROM task_events WHERE task_id = $1 AND seq > $2)"


class MeasuredEvent(TaskEventRow):
    """An event, and how many bytes the page holds up to it."""

    bytes: int


class EventWithState(TaskEventRow):
    """An event with its task's present state, and what the task ended in if it made that state."""

    actor: str
    status: str
    last_seq: int
    result: Any
    error: dict[str, Any] | None


class EventJustRead(EventWithState):
    """The same, and when it was read, by the clock that dated it."""

    read_at: datetime


class Output(Record):
    """What an attempt has put out."""

    text: str


async def page(
    db: Database, task_id: UUID, *, after: int, most_rows: int, most_bytes: int, types: Sequence[str] | None = None
) -> list[MeasuredEvent]:
    """The next events, up to so many, or fewer once they hold so many bytes; `bytes` counts them up to each row.

    `seq` has no gaps but where a restore went on beyond what had been seen: from the next event on, the range says how
    far to read even where the planner would sort a long history before its limit. A page ends before such a gap.
    """
    return await fetch(
        db,
        MeasuredEvent,
        f"""
        SELECT seq, type, at, attempt, data, bytes FROM (
            SELECT *, sum(size) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS bytes FROM (
                SELECT seq, type, at, attempt, data, {WRITTEN_SIZE} AS size FROM (
                    SELECT *, sum(stored) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS stored_bytes FROM (
                        SELECT seq, type, at, attempt, data, pg_column_size(data) AS stored FROM task_events
                        WHERE task_id = $1 AND ($3::text[] IS NULL OR type = ANY ($3))
                          AND seq > $2 AND seq < CASE WHEN $3::text[] IS NULL THEN {NEXT_SEQ} + $4 ELSE 2147483647 END
                        ORDER BY seq LIMIT $4
                    ) AS found
                ) AS few WHERE stored_bytes - stored < $5
            ) AS measured
        ) AS summed
        WHERE bytes - size < $5 ORDER BY seq
        """,  # noqa: S608 - a constant
        task_id,
        after,
        types,
        most_rows,
        most_bytes,
    )


PRESENT_STATE = f"""
    t.actor, t.status, t.last_seq,
    CASE WHEN e.seq = t.last_seq AND {FINISHED} THEN t.result END AS result,
    CASE WHEN e.seq = t.last_seq AND {FINISHED} THEN t.error END AS error
"""
"""An event's task as it is now; the event that made this state carries what the task ended in."""


async def follow(db: Database, task_id: UUID, *, after: int, most_rows: int, most_bytes: int) -> list[EventJustRead]:
    """The same page, each event with its task's present state.

    One statement sees one moment. Read apart, a state older than the events would take an end for one of an earlier
    life, and a newer one would close a stream over events that it has not told. Where there is nothing new, the one
    row that comes back has no `seq`.
    """
    return await fetch(
        db,
        EventJustRead,
        f"""
        SELECT e.seq, e.type, e.at, e.attempt, e.data, {PRESENT_STATE}, clock_timestamp() AS read_at
        FROM tasks t LEFT JOIN LATERAL (
            SELECT *, sum(size) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS bytes FROM (
                SELECT seq, type, at, attempt, data, {WRITTEN_SIZE} AS size FROM (
                    SELECT *, sum(stored) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) AS stored_bytes FROM (
                        SELECT seq, type, at, attempt, data, pg_column_size(data) AS stored FROM task_events
                        WHERE task_id = $1 AND seq > $2 AND seq < {NEXT_SEQ} + $3
                    ) AS found
                ) AS few WHERE stored_bytes - stored < $4
            ) AS measured
        ) AS e ON e.bytes - e.size < $4
        WHERE t.task_id = $1 ORDER BY e.seq
        """,  # noqa: S608 - a constant
        task_id,
        after,
        most_rows,
        most_bytes,
    )


async def state(db: Database, task_id: UUID) -> TaskRow | None:
    """`user_id, status, last_seq`: whether there is something to read, and for whom."""
    return await fetchrow(db, TaskRow, "SELECT user_id, status, last_seq FROM tasks WHERE task_id = $1", task_id)


async def newest(db: Database, task_ids: Sequence[UUID]) -> dict[UUID, int]:
    """The last `seq` of each task, or project: one question for all the streams of a process."""
    query = """
        SELECT task_id, last_seq FROM tasks WHERE task_id = ANY ($1)
        UNION ALL SELECT project_id, last_seq FROM projects WHERE project_id = ANY ($1)
    """
    rows = await fetch(db, TaskRow, query, list(task_ids))
    return {row.task_id: row.last_seq for row in rows}


EARLIER_EVENTS = 4000


async def earlier_output(db: Database, task_id: UUID, *, before_attempt: int, most_bytes: int) -> str:
    """The end of what earlier attempts of the task's present life have put out, oldest first; empty if nothing. What
    came on a stream of its own, stderr, is about the work and not the work."""
    rows = await fetch(
        db,
        Output,
        """
        SELECT text FROM (
            SELECT seq, text, sum(size) OVER (ORDER BY seq DESC) - size AS bytes_after FROM (
                SELECT seq, data ->> 'text' AS text, octet_length(data ->> 'text') AS size FROM task_events
                WHERE task_id = $1 AND type = 'output' AND attempt < $2 AND data ? 'text' AND NOT data ? 'stream'
                  AND seq > (SELECT coalesce(max(seq), 0) FROM task_events WHERE task_id = $1 AND type = 'revive')
                ORDER BY seq DESC LIMIT $4
            ) AS newest
        ) AS measured
        WHERE bytes_after < $3 ORDER BY seq
        """,
        task_id,
        before_attempt,
        most_bytes,
        EARLIER_EVENTS,
    )
    text = "".join(row.text for row in rows).encode()
    return text[-most_bytes:].decode(errors="ignore")
