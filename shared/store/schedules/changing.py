"""Schedules are made, changed, paused, resumed and deleted; what was due until then has its row first."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from windlass.shared.db import Database, as_json
from windlass.shared.schedules.planner import Plan, Planned, due, first
from windlass.shared.schedules.times import Rule
from windlass.shared.schedules.words import Cause, PauseReason, ScheduleState
from windlass.shared.store.functions import named
from windlass.shared.store.record import fetchrow
from windlass.shared.store.schedules import firing, reading
from windlass.shared.store.schedules.reading import Read, policy_of

TRIES = 20
"""Somebody else may fire or change it just now, again and again; not so often."""

OWNS_ITS_TIMES = ("cron", "every_seconds", "timezone", "jitter_seconds")


class Change(StrEnum):
    """What is done to a schedule, as its history calls it."""

    CHANGE = "change"
    PAUSE = "pause"
    RESUME = "resume"
    DELETE = "delete"
    RESTORE = "restore"


class NewSchedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule as somebody wants it, checked."""

    user_id: str
    name: str
    cron: str | None
    every_seconds: int | None
    timezone: str
    target: dict[str, Any]
    kind: str
    prepared: dict[str, Any]
    overlap: str
    catch_up: str
    catch_up_window_seconds: float
    jitter_seconds: float
    pause_after_failures: int | None
    declared_by: str | None = None


class NameTaken(Exception):
    """Its owner has another schedule of that name."""


class Busy(Exception):
    """Somebody else was quicker every time."""


async def create(db: Database, wanted: NewSchedule, *, now: datetime | None = None) -> UUID:
    """From now on; raises NameTaken."""
    moment = now or await reading.now(db)
    schedule_id = uuid7()
    fields = {"schedule_id": schedule_id, **msgspec.structs.asdict(wanted), **_begun(wanted, schedule_id, moment)}
    query = f"SELECT {named('create_schedule')}($1::text::jsonb)"
    made: UUID | None = await db.fetchval(query, as_json(fields))
    if made is None:
        raise NameTaken
    return made


async def change(db: Database, schedule_id: UUID, wanted: NewSchedule, *, now: datetime | None = None) -> Read | None:
    """What was due before is decided about as it was; from now on it is another. None when there is none."""
    for _ in range(TRIES):
        row = await _read(db, schedule_id, now)
        if row is None:
            return None
        if row.state == ScheduleState.ACTIVE and row.next_at is not None and row.next_at <= row.read_at:
            await firing.fire_alone(db, firing.planned(row), Cause.TIME, row.read_at)
            continue
        fields = msgspec.structs.asdict(wanted)
        has_other_times = any(fields[name] != row[name] for name in OWNS_ITS_TIMES)
        if has_other_times:
            fields |= _begun(wanted, schedule_id, max(row.read_at, row.last_due_at))
            if row.state == ScheduleState.PAUSED:
                fields |= {"next_due_at": None, "next_at": None}
        if await _change(db, row, Change.CHANGE, fields, _gap(row, has_other_times=has_other_times)):
            return await reading.get(db, schedule_id)
    raise Busy


async def pause(
    db: Database, schedule_id: UUID, note: str | None = None, *, now: datetime | None = None
) -> Read | None:
    """Starts nothing from here on. A schedule that is paused already stays as it is, with its note."""

    def fields(row: Read) -> Mapping[str, Any] | None:
        if row.state == ScheduleState.PAUSED:
            return None
        why = {"pause_reason": PauseReason.ASKED_FOR, "pause_note": note}
        return {"state": "paused", **why, "next_due_at": None, "next_at": None}

    return await _move(db, schedule_id, Change.PAUSE, fields, now)


async def resume(db: Database, schedule_id: UUID, *, now: datetime | None = None) -> Read | None:
    """From now on; what was due meanwhile was missed."""

    def fields(row: Read) -> Mapping[str, Any] | None:
        if row.state == ScheduleState.ACTIVE:
            return None
        return {"state": "active", "pause_reason": None, "pause_note": None, "failures": 0}

    return await _move(db, schedule_id, Change.RESUME, fields, now)


async def delete(db: Database, schedule_id: UUID, *, now: datetime | None = None) -> bool:
    """Its rows are kept, and its name is free."""
    await _move(db, schedule_id, Change.DELETE, lambda _row: {"next_due_at": None, "next_at": None}, now)
    return True


async def miss_all(db: Database, reason: str, *, step: int) -> int:
    """After a restore: what was due since the backup may have been started, and is not started again. No number of a
    history that anybody may have seen is given again. Returns how many schedules had something due."""
    await db.execute("UPDATE schedules SET last_seq = last_seq + $1", step)
    rows = await db.fetch("SELECT schedule_id FROM schedules WHERE next_at <= clock_timestamp() ORDER BY schedule_id")
    for (schedule_id,) in rows:
        for _ in range(TRIES):
            row = await reading.get(db, schedule_id)
            if row is None:
                break
            plan = due(policy_of(row), row.last_due_at, row.read_at, all_missed=reason)
            fields = {"last_due_at": plan.last_due_at or row.last_due_at, **_next(plan)}
            if await _change(db, row, Change.RESTORE, fields, plan):
                break
    return len(rows)


async def _move(db: Database, schedule_id: UUID, change: Change, fields: Any, now: datetime | None) -> Read | None:
    for _ in range(TRIES):
        row = await _read(db, schedule_id, now)
        if row is None:
            return None
        wanted = fields(row)
        if wanted is None:
            return row
        reason = {Change.DELETE: "deleted"}.get(change, "paused")
        plan = due(policy_of(row), row.last_due_at, row.read_at, all_missed=reason)
        if change == Change.DELETE:
            plan = _to_the_last(row, plan, reason)
        told = {"last_due_at": plan.last_due_at or row.last_due_at, **_next(plan), **wanted}
        if await _change(db, row, change, told, plan):
            return await reading.get(db, schedule_id)
    raise Busy


def _to_the_last(row: Read, plan: Plan, reason: str) -> Plan:
    """With what was due a moment ago and waits for its jitter: nobody comes back for it."""
    left = policy_of(row).rule.between(plan.last_due_at or row.last_due_at, row.read_at)
    return Plan([*plan.occurrences, *(Planned(each, reason) for each in left)], None, None)


def _gap(row: Read, *, has_other_times: bool) -> Plan | None:
    """What was due under the rule that ends now, and has no row: while it was paused, or, with jitter, a moment ago."""
    if row.state == ScheduleState.PAUSED:
        return due(policy_of(row), row.last_due_at, row.read_at, all_missed="paused")
    if not has_other_times:
        return None
    times = policy_of(row).rule.between(row.last_due_at, row.read_at)
    return Plan([Planned(each, "changed") for each in times], None, None)


async def _change(db: Database, row: Read, change: Change, fields: Mapping[str, Any], plan: Plan | None) -> bool:
    """Whether nobody was quicker."""
    missed = [] if plan is None else [firing.occurrence(row, each) for each in plan.occurrences]
    if plan is not None and plan.last_due_at is not None:
        fields = {"last_due_at": plan.last_due_at, **fields}
    seen = {"version": row.version, "last_due_at": row.last_due_at, "seen_next_at": row.next_at}
    refusal = await db.fetchval(
        f"SELECT {named('change_schedule')}($1, $2::text::jsonb, $3, $4::text::jsonb, $5::text::jsonb)",
        row.schedule_id,
        as_json(seen),
        change,
        as_json(fields),
        as_json(missed),
    )
    if refusal == "name-taken":
        raise NameTaken
    return refusal is None


async def _read(db: Database, schedule_id: UUID, now: datetime | None) -> Read | None:
    query = """
        SELECT s.*, coalesce($2, clock_timestamp()) AS read_at FROM schedules s
        WHERE s.schedule_id = $1 AND s.deleted_at IS NULL
    """
    return await fetchrow(db, Read, query, schedule_id, now)


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
