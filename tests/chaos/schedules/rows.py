"""The tables of schedules as the judge reads them, by statements of its own, and the rules that the witness saw."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import asyncpg


@dataclass(frozen=True)
class Rule:
    """Every so many seconds from `anchor` on, for the times behind `since`; until the next rule's."""

    every_seconds: int
    anchor: float
    since: float

    def times(self, until: float) -> list[float]:
        number = int((self.since - self.anchor) // self.every_seconds) + 1
        found = []
        while (at := self.anchor + number * self.every_seconds) <= until:
            found.append(at)
            number += 1
        return found

    def has(self, at: float) -> bool:
        return round(at - self.anchor) % self.every_seconds == 0


@dataclass(frozen=True)
class RunRow:
    due_at: float
    outcome: str
    cause: str
    started: str | None
    """The task, the workflow or the run of a project."""
    count: int = 1
    until: float | None = None


@dataclass(frozen=True)
class ScheduleRow:
    schedule_id: str
    state: str
    reached: float
    """Up to here every due time has its row, as it says itself."""
    deleted_at: float | None
    next_late: float | None = None
    """How many seconds ago the next was due."""


@dataclass(frozen=True)
class ScheduleRows:
    schedules: Sequence[ScheduleRow] = ()
    rules: Mapping[str, Sequence[Rule]] = field(default_factory=dict)
    runs: Mapping[str, Sequence[RunRow]] = field(default_factory=dict)
    started: Sequence[tuple[str, str]] = ()
    """Schedule and id of everything that says by its own row that a schedule has started it."""


SCHEDULES = """
    SELECT schedule_id::text, state, extract(epoch FROM last_due_at)::float AS reached,
           extract(epoch FROM deleted_at)::float AS deleted_at,
           extract(epoch FROM clock_timestamp() - next_at)::float AS next_late
    FROM schedules
"""
RULES = """
    SELECT schedule_id::text, every_seconds, extract(epoch FROM anchor_at)::float AS anchor,
           extract(epoch FROM since)::float AS since
    FROM storm_rules WHERE every_seconds IS NOT NULL ORDER BY schedule_id, number
"""
RUNS = """
    SELECT schedule_id::text, extract(epoch FROM due_at)::float AS due_at, outcome, cause,
           coalesce(task_id, workflow_id, run_id)::text AS started, count, extract(epoch FROM until)::float AS until
    FROM schedule_runs ORDER BY schedule_id, due_at
"""
STARTED = """
    SELECT schedule_id::text, task_id::text FROM tasks WHERE schedule_id IS NOT NULL
    UNION ALL SELECT schedule_id::text, workflow_id::text FROM workflows WHERE schedule_id IS NOT NULL
    UNION ALL SELECT schedule_id::text, run_id::text FROM project_runs WHERE schedule_id IS NOT NULL
"""


def read_schedules(database_url: str) -> ScheduleRows:
    """Nothing, where no storm has installed its witness."""
    return asyncio.run(_read(database_url))


async def _read(database_url: str) -> ScheduleRows:
    connection = await asyncpg.connect(database_url, timeout=30)
    try:
        async with connection.transaction(isolation="repeatable_read", readonly=True):
            if await connection.fetchval("SELECT to_regclass('public.storm_rules')") is None:
                return ScheduleRows()
            rules: dict[str, list[Rule]] = {}
            for row in await connection.fetch(RULES):
                rules.setdefault(row["schedule_id"], []).append(Rule(row["every_seconds"], row["anchor"], row["since"]))
            runs: dict[str, list[RunRow]] = {}
            for row in await connection.fetch(RUNS):
                values = dict(row)
                runs.setdefault(values.pop("schedule_id"), []).append(RunRow(**values))
            return ScheduleRows(
                [ScheduleRow(**dict(row)) for row in await connection.fetch(SCHEDULES)],
                rules,
                runs,
                [tuple(row) for row in await connection.fetch(STARTED)],
            )
    finally:
        await connection.close()
