"""Schedules as they are now, and what became of the times that they were due."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.schedules.planner import Policy
from windlass.shared.schedules.times import Rule
from windlass.shared.schedules.words import CatchUp
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import ScheduleRow, ScheduleRunRow


class Read(ScheduleRow):
    """A schedule, and the time by Postgres' clock at which it was read."""

    read_at: datetime


class InState(Record):
    """How many there are in a state, and how late the one is that is due longest."""

    state: str
    reason: str
    schedules: int
    overdue_seconds: float


READ = "SELECT s.*, clock_timestamp() AS read_at FROM schedules s"


def rule_of(row: ScheduleRow) -> Rule:
    return Rule(
        row.schedule_id,
        row.anchor_at,
        cron=row.cron,
        every_seconds=row.every_seconds,
        timezone=row.timezone,
        jitter_seconds=row.jitter_seconds,
    )


def policy_of(row: ScheduleRow) -> Policy:
    return Policy(rule_of(row), CatchUp(row.catch_up), row.catch_up_window_seconds)


async def now(db: Database) -> datetime:
    moment: datetime = await db.fetchval("SELECT clock_timestamp()")
    return moment


async def get(db: Database, schedule_id: UUID) -> Read | None:
    return await fetchrow(db, Read, f"{READ} WHERE s.schedule_id = $1 AND s.deleted_at IS NULL", schedule_id)


async def named(db: Database, name: str, *, owner: str | None) -> list[Read]:
    """Of one user, or everybody's: only one user's have different names."""
    query = f"{READ} WHERE s.name = $1 AND s.deleted_at IS NULL AND ($2::text IS NULL OR s.user_id = $2) LIMIT 2"
    return await fetch(db, Read, query, name, owner)


async def newest(
    db: Database, *, owner: str | None, states: Sequence[str] | None, before: UUID | None, limit: int
) -> list[Read]:
    query = f"""
        {READ} WHERE s.deleted_at IS NULL AND ($1::text IS NULL OR s.user_id = $1)
          AND ($2::text[] IS NULL OR s.state = ANY ($2)) AND ($3::uuid IS NULL OR s.schedule_id < $3)
        ORDER BY s.schedule_id DESC LIMIT $4
    """
    return await fetch(db, Read, query, owner, None if states is None else list(states), before, limit)


async def declared(db: Database) -> list[Read]:
    """Those that stand in the configuration or in actors' code."""
    return await fetch(db, Read, f"{READ} WHERE s.declared_by IS NOT NULL AND s.deleted_at IS NULL")


async def runs(
    db: Database, schedule_id: UUID, *, outcomes: Sequence[str] | None = None, before: datetime | None, limit: int
) -> list[ScheduleRunRow]:
    """What became of its due times, the latest first."""
    query = """
        SELECT * FROM schedule_runs WHERE schedule_id = $1 AND ($2::timestamptz IS NULL OR due_at < $2)
          AND ($3::text[] IS NULL OR outcome = ANY ($3))
        ORDER BY due_at DESC LIMIT $4
    """
    wanted = None if outcomes is None else list(outcomes)
    return await fetch(db, ScheduleRunRow, query, schedule_id, before, wanted, limit)


async def some_runs(db: Database, schedule_id: UUID, due_times: Sequence[datetime]) -> list[ScheduleRunRow]:
    query = "SELECT * FROM schedule_runs WHERE schedule_id = $1 AND due_at = ANY ($2) ORDER BY due_at"
    return await fetch(db, ScheduleRunRow, query, schedule_id, list(due_times))


async def count_states(db: Database) -> list[InState]:
    """Also how late the latest one is: as long as a janitor looks, by no more than moments."""
    return await fetch(
        db,
        InState,
        """
        SELECT s.state, coalesce(s.pause_reason, '') AS reason, count(*)::int AS schedules,
               greatest(coalesce(extract(epoch FROM clock_timestamp() - min(s.next_at)), 0), 0)::float
                   AS overdue_seconds
        FROM schedules s WHERE s.deleted_at IS NULL GROUP BY s.state, s.pause_reason
        """,
    )
