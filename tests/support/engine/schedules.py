"""Schedules on a real database, at times that a test makes up."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from tests.support.engine.store import Engine, a_submission
from windlass.shared.concerns import Concern
from windlass.shared.db import as_json
from windlass.shared.features.schedules import changing, firing
from windlass.shared.features.schedules.reporting import Decision
from windlass.shared.store.rows import ScheduleRunRow
from windlass.shared.store.schedules import reading
from windlass.shared.store.schedules.reading import Read
from windlass.shared.submission.scheduled import NewSchedule

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
HOUR = timedelta(hours=1)


def a_task(**fields: Any) -> dict[str, Any]:
    """A probe, as the api prepares it."""
    submission = a_submission(**{"user_id": "ann", **fields})
    task: dict[str, Any] = msgspec.to_builtins(replace(submission, concerns=submission.concerns | Concern.SCHEDULE))
    del task["task_id"]
    return task


def a_workflow() -> dict[str, Any]:
    """Two probes, the one after the other."""
    workflow_id, first, second = uuid7(), uuid7(), uuid7()
    of_it = {
        "user_id": "ann",
        "workflow_id": str(workflow_id),
        "group_id": workflow_id,
        "concerns": Concern.WORKFLOW.value,
    }
    made = [
        a_submission(task_id=first, workflow_key="first", **of_it),
        a_submission(task_id=second, workflow_key="second", depends_on=[first], **of_it),
    ]
    document: dict[str, Any] = msgspec.json.decode(
        as_json(
            {
                "workflow": {"workflow_id": workflow_id, "user_id": "ann", "name": "report"},
                "nodes": [],
                "submissions": made,
            }
        )
    )
    return document


def wanted(name: str = "nightly", *, every: int | None = None, **fields: Any) -> NewSchedule:
    """Ann's, due at every full hour if nothing else is said."""
    cron = fields.pop("cron", None if every else "0 * * * *")
    return NewSchedule(**{
        "user_id": "ann", "name": name, "cron": cron, "every_seconds": every, "timezone": "UTC", "target": {},
        "kind": "task", "prepared": a_task(), "overlap": "skip", "catch_up": "latest",
        "catch_up_window_seconds": 3600, "jitter_seconds": 0, "pause_after_failures": None, **fields,
    })  # fmt: skip


class Schedule:
    """One schedule and a clock of its own."""

    def __init__(self, engine: Engine, schedule_id: UUID, now: datetime) -> None:
        self.engine = engine
        self.schedule_id = schedule_id
        self.now = now

    @classmethod
    async def made(cls, engine: Engine, name: str = "nightly", *, now: datetime = NOON, **fields: Any) -> "Schedule":
        """Half past eleven by default would be too easy: it is made at noon, and due at one."""
        await a_key_for(engine, "ann")
        schedule_id = await changing.create(engine.pool, wanted(name, **fields), now=now)
        return cls(engine, schedule_id, now)

    async def row(self) -> Read:
        row = await reading.get(self.engine.pool, self.schedule_id)
        assert row is not None
        return row

    async def after(self, time: timedelta) -> list[Decision]:
        """The clock goes on, or back, and an orchestrator looks."""
        self.now += time
        return await look(self.engine, self.now)

    async def runs(self) -> list[ScheduleRunRow]:
        """The oldest first."""
        return (await reading.runs(self.engine.pool, self.schedule_id, before=None, limit=5000))[::-1]

    async def told(self) -> list[tuple[int, str, str | None]]:
        """The hours after noon at which it was due, and what became of each."""
        return [(round((each.due_at - NOON) / HOUR), each.outcome, each.reason) for each in await self.runs()]

    async def last(self) -> ScheduleRunRow:
        return (await self.runs())[-1]

    async def task(self) -> UUID:
        """What was started last."""
        started = [each for each in await self.runs() if each.outcome == "started"]
        assert started[-1].task_id is not None
        return started[-1].task_id

    async def finish(self, transition: str = "complete", **fields: Any) -> None:
        await self.engine.finish(await self.engine.start(await self.task()), transition, **fields)

    async def settle(self) -> list[Decision]:
        return await firing.settle(self.engine.pool, self.schedule_id)

    async def change(self, **fields: Any) -> None:
        assert await changing.change(self.engine.pool, self.schedule_id, wanted(**fields), now=self.now)

    async def pause(self) -> None:
        await changing.pause(self.engine.pool, self.schedule_id, now=self.now)

    async def resume(self) -> None:
        await changing.resume(self.engine.pool, self.schedule_id, now=self.now)

    async def story(self) -> list[str]:
        rows = await self.engine.pool.fetch(
            "SELECT type FROM schedule_events WHERE schedule_id = $1 ORDER BY seq", self.schedule_id
        )
        return [row["type"] for row in rows]


async def look(engine: Engine, now: datetime) -> list[Decision]:
    """As an orchestrator does, at a time of the test's own."""
    decided = []
    while rows := await firing.due_now(engine.pool, now=now, at_most=100):
        for row in rows:
            decided += await firing.fire(engine.pool, firing.planned(row))
    return decided


async def a_key_for(engine: Engine, user_id: str) -> None:
    await engine.pool.execute(
        "INSERT INTO api_keys (key_id, secret_hash, role, user_id) VALUES ($1, '', 'user', $1) ON CONFLICT DO NOTHING",
        user_id,
    )


async def started(engine: Engine) -> int:
    count: int = await engine.pool.fetchval("SELECT count(*) FROM tasks WHERE schedule_id IS NOT NULL")
    return count
