"""Everybody's history in the order of commit, read so that what commits late is never skipped.

Events carry the number of their transaction. Only what lies below the oldest open transaction is settled: above that
line one with a smaller number may still commit. A position is always that of an event, never the line itself: an
event's number is on disk with it, while after a crash Postgres may give the numbers of unfinished transactions anew.
"""

from dataclasses import dataclass
from typing import Self
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.sql_fragments import FINISHED, words
from windlass.shared.store.reading.events import PRESENT_STATE, WRITTEN_SIZE, EventJustRead, EventWithState
from windlass.shared.store.record import fetch, fetchrow
from windlass.shared.store.rows import TaskEventRow


@dataclass(frozen=True, order=True)
class Position:
    """Everything up to and with this event lies behind."""

    xid: int
    task_id: UUID
    seq: int

    @classmethod
    def before(cls, xid: int) -> Self:
        """Everything that earlier transactions wrote lies behind."""
        return cls(xid, UUID(int=0), 0)


BEGINNING = Position.before(0)

IN_ORDER = "ORDER BY commit_xid, task_id, seq ROWS UNBOUNDED PRECEDING"

NO_STATE = ("output", "step")
"""What an attempt says while it works, beside its progress."""


@dataclass(frozen=True)
class Look:
    """How far one can see: the last of so many settled events, and what lies beyond it."""

    end: Position
    line: int
    """The oldest open transaction."""
    is_full: bool
    """It stopped at its limit: there may be more at once."""
    has_unsettled: bool
    """Some are stored above the line: there will be more when the line has moved."""


@dataclass(frozen=True)
class Wanted:
    """Which tasks somebody wants to hear of; every condition that is given has to hold."""

    task_ids: frozenset[UUID] | None = None
    project_id: str | None = None
    workflow_id: str | None = None
    user_id: str | None = None
    visible_to: str | None = None
    """The only user whose tasks may be seen; none where all may."""
    only_state: bool = False
    """Without what `NO_STATE` events hold: they keep their place in the order, and are empty."""

    def covers(self, task_id: UUID, project_id: str | None, workflow_id: str | None, user_id: str) -> bool:
        """Whether the events of such a task are wanted, by the conditions of `between`."""
        return (
            (self.task_ids is None or task_id in self.task_ids)
            and self.project_id in {None, project_id}
            and self.workflow_id in {None, workflow_id}
            and self.user_id in {None, user_id}
            and self.visible_to in {None, user_id}
        )


class Sighting(TaskEventRow):
    """An event's place, and what filters go by; without a task there was none, and the rest is known all the same."""

    project_id: str | None
    workflow_id: str | None
    user_id: str
    has_unsettled: bool


@dataclass(frozen=True)
class Sight:
    """The settled events that follow a position, as far as one look goes."""

    seen: list[Sighting]
    end: Position
    is_full: bool
    has_unsettled: bool


class Farthest(TaskEventRow):
    """The last of `number` settled events; where there are none, nothing but the line is known."""

    number: int
    line: int
    has_unsettled: bool


class SettledEvent(EventJustRead):
    """An event in its place: the transaction of the same task's event before, and the bytes up to this one."""

    previous_xid: int | None
    bytes: int


async def is_known(db: Database, position: Position) -> bool:
    """Whether there is such an event; one that was given out and is no more is from a future that a restore undid."""
    known: bool = await db.fetchval(
        "SELECT EXISTS (SELECT FROM task_events WHERE task_id = $1 AND seq = $2 AND xid = $3::text::xid8)",
        position.task_id,
        position.seq,
        str(position.xid),
    )
    return known or position == BEGINNING


async def newest(db: Database) -> Position:
    """The last event of all, settled or not."""
    row = await fetchrow(
        db,
        TaskEventRow,
        """
        SELECT e.xid::text::bigint AS xid, e.task_id, e.seq FROM task_events e
        ORDER BY e.xid DESC, e.task_id DESC, e.seq DESC LIMIT 1
        """,
    )
    return _position(row)


async def newest_settled(db: Database) -> Position:
    row = await fetchrow(
        db,
        TaskEventRow,
        """
        SELECT e.xid::text::bigint AS xid, e.task_id, e.seq FROM task_events e
        WHERE e.xid < pg_snapshot_xmin(pg_current_snapshot())
        ORDER BY e.xid DESC, e.task_id DESC, e.seq DESC LIMIT 1
        """,
    )
    return _position(row)


async def look(db: Database, after: Position, *, at_most: int) -> Look:
    """Looks over the settled events that follow, whosever they are."""
    row = await fetchrow(
        db,
        Farthest,
        """
        WITH line AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xid),
        seen AS MATERIALIZED (
            SELECT e.xid, e.task_id, e.seq FROM task_events e
            WHERE (e.xid, e.task_id, e.seq) > ($1::text::xid8, $2::uuid, $3::int) AND e.xid < (SELECT xid FROM line)
            ORDER BY e.xid, e.task_id, e.seq LIMIT $4
        )
        SELECT farthest.xid::text::bigint AS xid, farthest.task_id, farthest.seq, counted.number,
               (SELECT xid FROM line)::text::bigint AS line,
               EXISTS (SELECT FROM task_events e WHERE e.xid >= (SELECT xid FROM line)) AS has_unsettled
        FROM (SELECT count(*) AS number FROM seen) AS counted
        LEFT JOIN (SELECT * FROM seen ORDER BY xid DESC, task_id DESC, seq DESC LIMIT 1) AS farthest ON true
        """,
        str(after.xid),
        after.task_id,
        after.seq,
        at_most,
    )
    assert row is not None, "a count always has a row"
    end = _position(row) if row.number else after
    return Look(end, row.line, row.number == at_most, row.has_unsettled)


async def sight(db: Database, after: Position, *, at_most: int) -> Sight:
    """The places of the settled events that follow, whosever they are, and nothing of what they hold."""
    rows = await fetch(
        db,
        Sighting,
        """
        WITH line AS MATERIALIZED (SELECT pg_snapshot_xmin(pg_current_snapshot()) AS xid),
        seen AS MATERIALIZED (
            SELECT e.xid, e.task_id, e.seq FROM task_events e
            WHERE (e.xid, e.task_id, e.seq) > ($1::text::xid8, $2::uuid, $3::int) AND e.xid < (SELECT xid FROM line)
            ORDER BY e.xid, e.task_id, e.seq LIMIT $4
        )
        SELECT seen.xid::text::bigint AS xid, seen.task_id, seen.seq, t.project_id, t.workflow_id, t.user_id,
               EXISTS (SELECT FROM task_events e WHERE e.xid >= (SELECT xid FROM line)) AS has_unsettled
        FROM line LEFT JOIN seen ON true LEFT JOIN tasks t ON t.task_id = seen.task_id
        ORDER BY seen.xid, seen.task_id, seen.seq
        """,
        str(after.xid),
        after.task_id,
        after.seq,
        at_most,
    )
    seen = [row for row in rows if row.task_id is not None]
    end = _position(seen[-1]) if seen else after
    return Sight(seen, end, len(seen) == at_most, rows[-1].has_unsettled)


async def between(
    db: Database, after: Position, end: Position, wanted: Wanted, *, most_rows: int, most_bytes: int
) -> list[SettledEvent]:
    """The wanted events from behind one position up to another, with their tasks' present state.

    `previous_xid` is the transaction of the same task's event before. That the state may be younger than the look that
    found the events does no harm: between two settled positions nothing changes any more.
    """
    return await fetch(
        db,
        SettledEvent,
        f"""
        SELECT *, clock_timestamp() AS read_at FROM (
            SELECT *, sum(size) OVER ({IN_ORDER}) AS bytes FROM (
              SELECT *, {WRITTEN_SIZE} + coalesce(octet_length(result::text), 0) AS size FROM (
               SELECT *, sum(stored) OVER ({IN_ORDER}) AS stored_bytes FROM (
                SELECT e.xid AS commit_xid, e.xid::text::bigint AS xid, e.task_id, e.seq, e.type, e.at, e.attempt,
                       kept.data, previous.xid::text::bigint AS previous_xid, {PRESENT_STATE},
                       pg_column_size(kept.data) + CASE WHEN e.seq = t.last_seq AND {FINISHED} AND t.result IS NOT NULL
                                                     THEN pg_column_size(t.result) ELSE 0 END AS stored
                FROM task_events e
                JOIN tasks t ON t.task_id = e.task_id
                CROSS JOIN LATERAL (
                    SELECT CASE WHEN $14 AND e.type IN {words(NO_STATE)} THEN '{{}}' ELSE e.data END AS data
                ) AS kept
                LEFT JOIN task_events previous ON previous.task_id = e.task_id AND previous.seq = e.seq - 1
                WHERE (e.xid, e.task_id, e.seq) > ($1::text::xid8, $2::uuid, $3::int)
                  AND (e.xid, e.task_id, e.seq) <= ($4::text::xid8, $5::uuid, $6::int)
                  AND ($7::uuid[] IS NULL OR e.task_id = ANY ($7))
                  AND ($8::text IS NULL OR t.project_id = $8)
                  AND ($9::text IS NULL OR t.workflow_id = $9)
                  AND ($10::text IS NULL OR t.user_id = $10)
                  AND ($11::text IS NULL OR t.user_id = $11)
                ORDER BY e.xid, e.task_id, e.seq LIMIT $12
               ) AS found
              ) AS few WHERE stored_bytes - stored < $13
            ) AS measured
        ) AS summed
        WHERE bytes - size < $13 ORDER BY commit_xid, task_id, seq
        """,  # noqa: S608 - constants
        str(after.xid),
        after.task_id,
        after.seq,
        str(end.xid),
        end.task_id,
        end.seq,
        None if wanted.task_ids is None else list(wanted.task_ids),
        wanted.project_id,
        wanted.workflow_id,
        wanted.user_id,
        wanted.visible_to,
        most_rows,
        most_bytes,
        wanted.only_state,
    )


async def overtaken(db: Database, task_id: UUID, *, before: int, xid: int) -> list[EventWithState]:
    """The events of a task just before the given one that were written by younger transactions.

    A transaction has its number from its first lock. While it then waits for a task, a younger one may write to that
    task and commit: of these two, the order of numbers is the wrong way round. Both are visible as soon as the older
    one has ended, wherever the line is.
    """
    return await fetch(
        db,
        EventWithState,
        f"""
        SELECT e.xid::text::bigint AS xid, e.task_id, e.seq, e.type, e.at, e.attempt, e.data, {PRESENT_STATE}
        FROM task_events e JOIN tasks t ON t.task_id = e.task_id
        WHERE e.task_id = $1 AND e.seq < $2 AND e.seq > coalesce((
            SELECT older.seq FROM task_events older
            WHERE older.task_id = $1 AND older.seq < $2 AND older.xid <= $3::text::xid8 ORDER BY older.seq DESC LIMIT 1
        ), 0)
        ORDER BY e.seq
        """,  # noqa: S608 - a constant
        task_id,
        before,
        str(xid),
    )


def _position(row: TaskEventRow | None) -> Position:
    return Position(row.xid, row.task_id, row.seq) if row is not None else BEGINNING
