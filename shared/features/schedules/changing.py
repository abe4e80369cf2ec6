"""Schedules are created, changed, paused, resumed and deleted. What was due until then gets its row first."""

from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from windlass.shared.db import Database
from windlass.shared.features.schedules import queries, reporting
from windlass.shared.features.schedules.queries import NameTaken
from windlass.shared.features.schedules.turn import Turn, in_turn
from windlass.shared.features.transactions import transaction
from windlass.shared.schedules.planner import Plan, Planned, due, first
from windlass.shared.schedules.times import Rule
from windlass.shared.schedules.words import PauseReason, ScheduleState
from windlass.shared.store.schedules import reading
from windlass.shared.store.schedules.reading import Read, policy_of
from windlass.shared.submission.scheduled import NewSchedule

__all__ = ["NameTaken", "change", "create", "delete", "miss_all", "pause", "resume"]

OWNS_ITS_TIMES = ("cron", "every_seconds", "timezone", "jitter_seconds")
PAUSED = {"state": ScheduleState.PAUSED, "pause_reason": PauseReason.ASKED_FOR, "next_due_at": None, "next_at": None}
ACTIVE = {"state": ScheduleState.ACTIVE, "pause_reason": None, "pause_note": None, "failures": 0}


class Change(StrEnum):
    """What is done to a schedule, as its history names it."""

    CREATE = "create"
    CHANGE = "change"
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"
    RESTORE = "restore"


async def create(db: Database, wanted: NewSchedule, *, now: datetime | None = None) -> UUID:
    """From now on. Raises NameTaken."""
    schedule_id = uuid7()
    async with transaction(db) as connection:
        moment = now or await reading.now(connection)
        fields = {**msgspec.structs.asdict(wanted), **_begun(wanted, schedule_id, moment)}
        await queries.insert(connection, schedule_id, fields)
        row = await queries.lock(connection, schedule_id, moment)
        assert row is not None, "it was just created"
        row, event = await queries.note(connection, row, Change.CREATE, {})
        await queries.wake(connection)
    reporting.report(row, (), (), [event])
    return schedule_id


async def change(db: Database, schedule_id: UUID, wanted: NewSchedule, *, now: datetime | None = None) -> Read | None:
    """What was due before is decided by the old definition. Returns nothing if there is no such schedule; raises
    NameTaken."""

    async def act(turn: Turn) -> Read:
        row = turn.row
        if row.state == ScheduleState.ACTIVE and row.next_at is not None and row.next_at <= row.read_at:
            plan = due(policy_of(row), row.last_due_at, row.read_at)
            row = await turn.fire(plan)
        fields = msgspec.structs.asdict(wanted)
        has_other_times = any(fields[name] != row[name] for name in OWNS_ITS_TIMES)
        gap = _gap(row, has_other_times=has_other_times)
        fields |= _reached(gap)
        if has_other_times:
            fields |= _begun(wanted, schedule_id, max(row.read_at, row.last_due_at))
            if row.state == ScheduleState.PAUSED:
                fields |= {"next_due_at": None, "next_at": None}
        return await turn.change(Change.CHANGE, fields, gap)

    return await in_turn(db, schedule_id, act, now=now)


async def pause(
    db: Database, schedule_id: UUID, note: str | None = None, *, now: datetime | None = None
) -> Read | None:
    """Starts nothing from here on. A schedule that is paused already stays as it is, with its note."""

    async def act(turn: Turn) -> Read:
        if turn.row.state == ScheduleState.PAUSED:
            return turn.row
        plan = due(policy_of(turn.row), turn.row.last_due_at, turn.row.read_at, all_missed="paused")
        fields = {**_reached(plan), **PAUSED, "pause_note": note}
        return await turn.change(Change.PAUSE, fields, plan.occurrences, gives_up="paused")

    return await in_turn(db, schedule_id, act, now=now)


async def resume(db: Database, schedule_id: UUID, *, now: datetime | None = None) -> Read | None:
    """From now on. What was due meanwhile was missed."""

    async def act(turn: Turn) -> Read:
        if turn.row.state == ScheduleState.ACTIVE:
            return turn.row
        plan = due(policy_of(turn.row), turn.row.last_due_at, turn.row.read_at, all_missed="paused")
        return await turn.change(Change.RESUME, {**_reached(plan), **_next(plan), **ACTIVE}, plan.occurrences)

    return await in_turn(db, schedule_id, act, now=now)


async def delete(db: Database, schedule_id: UUID, *, now: datetime | None = None) -> None:
    """Its rows are kept, and its name is free."""

    async def act(turn: Turn) -> Read:
        row = turn.row
        plan = due(policy_of(row), row.last_due_at, row.read_at, all_missed="deleted")
        # A time that waits for its jitter is missed, too.
        late = policy_of(row).rule.between(plan.last_due_at or row.last_due_at, row.read_at)
        missed = [*plan.occurrences, *(Planned(each, "deleted") for each in late)]
        fields = {**_reached(missed), "next_due_at": None, "next_at": None}
        return await turn.change(Change.DELETE, fields, missed, gives_up="deleted")

    await in_turn(db, schedule_id, act, now=now)


async def miss_all(db: Database, reason: str, *, step: int) -> int:
    """After a restore: what was due since the backup may have been started, and is not started again. Numbers of
    histories that a client may have seen are not used again. Returns how many schedules had something due."""
    await db.execute("UPDATE schedules SET last_seq = last_seq + $1", step)
    rows = await db.fetch("SELECT schedule_id FROM schedules WHERE next_at <= clock_timestamp() ORDER BY schedule_id")

    async def act(turn: Turn) -> Read:
        plan = due(policy_of(turn.row), turn.row.last_due_at, turn.row.read_at, all_missed=reason)
        return await turn.change(Change.RESTORE, {**_reached(plan), **_next(plan)}, plan.occurrences)

    for (schedule_id,) in rows:
        await in_turn(db, schedule_id, act, catches_up=False)
    return len(rows)


def _gap(row: Read, *, has_other_times: bool) -> list[Planned]:
    """What was due under the old rule and has no row: while the schedule was paused, or while a jitter ran."""
    if row.state == ScheduleState.PAUSED:
        return list(due(policy_of(row), row.last_due_at, row.read_at, all_missed="paused").occurrences)
    if not has_other_times:
        return []
    return [Planned(each, "changed") for each in policy_of(row).rule.between(row.last_due_at, row.read_at)]


def _begun(wanted: NewSchedule, schedule_id: UUID, moment: datetime) -> dict[str, Any]:
    """Its times begin at a whole second: every so many from there on."""
    anchor = moment.replace(microsecond=0)
    rule = Rule(
        schedule_id,
        anchor,
        cron=wanted.cron,
        every_seconds=wanted.every_seconds,
        timezone=wanted.timezone,
        jitter_seconds=wanted.jitter_seconds,
    )
    return {"anchor_at": anchor, "last_due_at": moment, **_next(first(rule, moment))}


def _next(plan: Plan) -> dict[str, Any]:
    return {"next_due_at": plan.next_due_at, "next_at": plan.next_at}


def _reached(missed: Plan | list[Planned]) -> dict[str, Any]:
    plan = missed if isinstance(missed, Plan) else Plan(missed, None, None)
    return {} if plan.last_due_at is None else {"last_due_at": plan.last_due_at}
