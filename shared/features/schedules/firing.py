"""Due times: found and started by the orchestrator, or on request by the api."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from windlass.shared import db as postgres
from windlass.shared.db import Database
from windlass.shared.features.projects.queries import pending_of_schedule
from windlass.shared.features.schedules import queries
from windlass.shared.features.schedules.reporting import Decision
from windlass.shared.features.schedules.turn import FEATURE, Turn, in_turn
from windlass.shared.features.transactions import transaction
from windlass.shared.metrics.schedules import LATE_SECONDS
from windlass.shared.schedules.planner import Plan, due
from windlass.shared.schedules.words import Cause, Outcome
from windlass.shared.store.record import fetch
from windlass.shared.store.schedules import reading
from windlass.shared.store.schedules.reading import Read, policy_of

log = logging.getLogger("schedules")


@dataclass(frozen=True)
class Planned:
    """A schedule as it was seen, and what its due times become."""

    seen: Read
    plan: Plan


async def due_now(
    db: Database, *, now: datetime | None = None, without: Sequence[UUID] = (), at_most: int
) -> list[Read]:
    """Schedules that are due, the longest overdue first. Tests bring their own time."""
    return await fetch(
        db,
        Read,
        """
        SELECT s.*, present.moment AS read_at
        FROM (SELECT coalesce($1, clock_timestamp()) AS moment OFFSET 0) AS present, schedules s
        WHERE s.next_at IS NOT NULL AND s.next_at <= present.moment AND s.schedule_id <> ALL ($3)
        ORDER BY s.next_at LIMIT $2
        """,
        now,
        at_most,
        list(without),
    )


async def seconds_to_next(db: Database, *, without: Sequence[UUID] = ()) -> float | None:
    """How long until the next schedule is due, by Postgres' clock: one probe of an index."""
    query = """
        SELECT extract(epoch FROM min(next_at) - clock_timestamp())::float FROM schedules
        WHERE next_at IS NOT NULL AND schedule_id <> ALL ($1)
    """
    seconds: float | None = await db.fetchval(query, list(without))
    return seconds


def planned(row: Read) -> Planned:
    return Planned(row, due(policy_of(row), row.last_due_at, row.read_at))


async def fire(db: Database, planned: Planned, now: datetime | None = None) -> list[Decision]:
    """Decides what is due, once: nothing happens if the schedule was changed or fired since it was read, or if another
    process has it. Any number of processes may do this, and may be killed in the middle."""
    seen, plan = planned.seen, planned.plan
    async with transaction(db) as connection:
        row = await queries.lock_as_seen(connection, seen, now or seen.read_at)
        if row is None:
            return []
        turn = Turn(connection, row)
        await turn.settle_started()
        # Its outbox rows are left to the relay, which finds everything settled.
        await turn.settle()
        settled = len(turn.decisions)
        await turn.fire(plan)
    turn.report()
    _observe(seen, turn.decisions)
    return turn.decisions[settled:]


async def fire_one(db: Database, row: Read, times: Sequence[datetime], cause: Cause) -> list[Decision]:
    """On request. Returns nothing if the schedule was changed since it was read."""

    async def act(turn: Turn) -> list[Decision]:
        if turn.row.version != row.version:
            return []
        settled = len(turn.decisions)
        await turn.decide(turn.occurrences(times, cause))
        return turn.decisions[settled:]

    return await in_turn(db, row.schedule_id, act) or []


async def settle(db: Database, schedule_id: UUID) -> list[Decision]:
    """Records what ended, and starts what waited for it. Returns what was decided."""

    async def act(turn: Turn) -> list[Decision]:
        return turn.decisions

    return await in_turn(db, schedule_id, act) or []


async def is_behind(db: Database, row: Read) -> bool:
    """Whether something has happened to what the schedule started, and was not handled yet."""
    return await queries.has_pending(db, FEATURE, row.schedule_id) or bool(
        await pending_of_schedule(db, row.schedule_id)
    )


async def caught_up(db: Database, row: Read) -> Read | None:
    """The schedule after everything that has happened until now. If that fails, it is returned as it was, and the
    orchestrator tries again."""
    try:
        await settle(db, row.schedule_id)
    except postgres.AWAY_OR_BUSY:
        raise
    except Exception:
        log.exception("schedule_catch_up_failed schedule=%s", row.schedule_id)
    return await reading.get(db, row.schedule_id)


def _observe(seen: Read, decisions: Sequence[Decision]) -> None:
    """How late a due time was started. Earlier ones, which were caught up with, do not count."""
    for each in decisions:
        if each.outcome == Outcome.STARTED and each.due_at == seen.next_due_at and seen.next_at is not None:
            LATE_SECONDS.labels(each.kind).observe(max((seen.read_at - seen.next_at).total_seconds(), 0))
