"""The times that have come: found, decided about once, and settled when what was started has ended."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.db import Database, as_json
from windlass.shared.metrics import counting
from windlass.shared.metrics.schedules import RUNS
from windlass.shared.schedules.planner import Plan, Planned, due
from windlass.shared.schedules.targets import fresh
from windlass.shared.schedules.words import Cause, Kind, Outcome, Overlap
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.rows import ScheduleRow
from windlass.shared.store.schedules.reading import Read, policy_of

AT_ONCE = 25
"""Schedules that are decided about in one transaction: so long may somebody wait who wants to change one of them."""


class Decided(Record):
    """A due time that has its row; not a new one, if it was asked for again."""

    schedule_id: UUID
    due_at: datetime
    outcome: str
    reason: str | None
    kind: str
    is_new: bool


class Settled(Decided):
    """One that has waited, and what was to be started."""

    start: dict[str, Any]


class SaidEvent(Record):
    """Something that happened to a schedule, said once."""

    schedule_id: UUID
    seq: int
    type: str
    data: dict[str, Any]
    name: str
    user_id: str


class Firing(msgspec.Struct, frozen=True):
    """What the planner has said of a schedule as it was seen."""

    schedule_id: UUID
    version: int
    last_due_at: datetime
    seen_next_at: datetime | None
    occurrences: list[dict[str, Any]]
    reached: datetime
    next_due_at: datetime | None
    next_at: datetime | None


async def due_now(db: Database, *, now: datetime | None = None, at_most: int) -> list[Read]:
    """Schedules whose time has come, those first that have waited longest; with the present as everybody is to take it.
    Tests bring their own."""
    return await fetch(
        db,
        Read,
        """
        SELECT s.*, present.moment AS read_at
        FROM (SELECT coalesce($1, clock_timestamp()) AS moment OFFSET 0) AS present, schedules s
        WHERE s.next_at IS NOT NULL AND s.next_at <= present.moment ORDER BY s.next_at LIMIT $2
        """,
        now,
        at_most,
    )


async def seconds_to_next(db: Database) -> float | None:
    """How long until the next is due, by Postgres' clock."""
    query = (
        "SELECT extract(epoch FROM min(next_at) - clock_timestamp())::float FROM schedules WHERE next_at IS NOT NULL"
    )
    seconds: float | None = await db.fetchval(query)
    return seconds


def planned(row: Read, plan: Plan | None = None) -> Firing:
    plan = plan or due(policy_of(row), row.last_due_at, row.read_at)
    return Firing(
        row.schedule_id,
        row.version,
        row.last_due_at,
        row.next_at,
        [occurrence(row, each) for each in plan.occurrences],
        plan.last_due_at or row.last_due_at,
        plan.next_due_at,
        plan.next_at,
    )


def occurrence(row: ScheduleRow, each: Planned) -> dict[str, Any]:
    told = {"due_at": each.due_at, "count": each.count, "until": each.until}
    if each.missed_because is not None:
        return {**told, "missed_because": each.missed_because}
    return {**told, "start": fresh(row.kind, row.prepared)}


def batches(rows: Sequence[Read]) -> Iterable[list[Read]]:
    """Of those that only make a new task, many at once; each other one alone, for what it locks is in no order with
    what the next one does."""
    plain = [row for row in rows if row.kind == Kind.TASK and row.overlap != Overlap.CANCEL_PREVIOUS]
    for first in range(0, len(plain), AT_ONCE):
        yield plain[first : first + AT_ONCE]
    for row in rows:
        if row.kind != Kind.TASK or row.overlap == Overlap.CANCEL_PREVIOUS:
            yield [row]


async def fire(db: Database, firings: Sequence[Firing], now: datetime) -> list[Decided]:
    """Any number may do this at once, and be killed in the middle: what has come is decided about once."""
    query = f"SELECT * FROM {named('fire_schedules')}($1::text::jsonb, $2)"  # noqa: S608 - a name of our own
    decided = await fetch(db, Decided, query, as_json(firings), now)
    _count(firings, decided)
    return decided


async def fire_one(db: Database, row: Read, times: Sequence[datetime], cause: Cause) -> list[Decided]:
    """For somebody who asks: waits for whoever has the schedule just now. None, if it was changed meanwhile."""
    firing = Firing(
        row.schedule_id, row.version, row.last_due_at, row.next_at,
        [occurrence(row, Planned(each)) for each in times], row.last_due_at, None, None,
    )  # fmt: skip
    return await fire_alone(db, firing, cause, row.read_at)


async def fire_alone(db: Database, firing: Firing, cause: Cause, now: datetime) -> list[Decided]:
    query = f"SELECT * FROM {named('fire_schedule')}($1::text::jsonb, $2, $3)"  # noqa: S608 - a name of our own
    decided = await fetch(db, Decided, query, as_json(firing), cause, now)
    _count([firing], decided)
    return decided


async def settle(db: Database, schedule_id: UUID) -> list[Settled]:
    """Writes down what has ended of what it started, and starts what has waited for that."""
    settled = await fetch(db, Settled, f"SELECT * FROM {named('settle_schedule')}($1)", schedule_id)  # noqa: S608
    _count_outcomes(settled)
    for each in settled:
        if each.outcome == Outcome.STARTED:
            _count_tasks(each.start)
    return settled


async def unsettled(db: Database, *, at_most: int = 200) -> list[UUID]:
    """Those that nobody has settled though there was something: an end that called while no janitor listened."""
    rows = await db.fetch(f"SELECT * FROM {named('unsettled_schedules')}($1)", at_most)  # noqa: S608
    return [row[0] for row in rows]


async def say_what_happened(db: Database, *, at_most: int = 200) -> list[SaidEvent]:
    query = f"SELECT * FROM {named('say_schedule_events')}($1)"  # noqa: S608 - a name of our own
    return sorted(await fetch(db, SaidEvent, query, at_most), key=lambda each: (each.schedule_id, each.seq))


def _count(firings: Sequence[Firing], decided: Sequence[Decided]) -> None:
    """The tasks that were submitted by it: whose row says that they were started now, and not by somebody else."""
    _count_outcomes(decided)
    begun = {(row.schedule_id, row.due_at) for row in decided if row.is_new and row.outcome == Outcome.STARTED}
    for firing in firings:
        for each in firing.occurrences:
            if (firing.schedule_id, each["due_at"]) in begun and "start" in each:
                _count_tasks(each["start"])


def _count_outcomes(decided: Sequence[Decided]) -> None:
    for each in decided:
        if each.is_new:
            RUNS.labels(each.kind, each.outcome).inc()


def _count_tasks(start: dict[str, Any]) -> None:
    counting.submitted([_Made(**task) for task in _tasks_of(start)])


class _Made(msgspec.Struct):
    actor: str
    provider: str


def _tasks_of(start: dict[str, Any]) -> list[dict[str, str]]:
    made = start.get("submissions", [start] if "actor" in start else [])
    return [{"actor": each["actor"], "provider": each["provider"]} for each in made]
