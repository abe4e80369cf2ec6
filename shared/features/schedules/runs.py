"""The rows of due times: what became of each, and how what was started is now. Written under the schedule's lock."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.features.schedules.rules import Occurrence, Verdict, kind_of
from windlass.shared.schedules.planner import Planned
from windlass.shared.schedules.words import Kind, Outcome
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import ScheduleRow, ScheduleRunRow
from windlass.shared.store.schedules.reading import Read


class OpenRun(Record):
    """A run that waits, or that was started and has no end yet, or that was started last: its task may live again."""

    due_at: datetime
    outcome: str
    cause: str
    start: dict[str, Any] | None
    task_id: UUID | None
    workflow_id: UUID | None
    project_id: UUID | None
    is_recorded: bool
    """Its end has been recorded."""
    is_live: bool
    status: str | None
    """The status of what was started; none if it no longer exists."""

    @property
    def ended_as(self) -> str | None:
        return None if self.is_live else self.status or "lost"


class Earlier(Record):
    """The row that a due time has already, if there is one, and whether the owner has a key."""

    has_key: bool
    due_at: datetime | None
    outcome: str
    reason: str | None
    until: datetime | None


async def open_runs(db: Database, row: ScheduleRow) -> list[OpenRun]:
    """In the order of their due times. A project's run lives as long as the project runs what this schedule started."""
    return await fetch(
        db,
        OpenRun,
        """
        SELECT r.due_at, r.outcome, r.cause, r.start, r.task_id, r.workflow_id, r.project_id,
               r.ended_at IS NOT NULL AS is_recorded, coalesce(t.status, w.status, p.stop_reason) AS status,
               coalesce(CASE WHEN r.task_id IS NOT NULL THEN t.task_id IS NOT NULL AND t.completed_at IS NULL
                             WHEN r.workflow_id IS NOT NULL THEN w.status IN ('running', 'escalated')
                             ELSE p.state <> 'idle' AND current.schedule_id = r.schedule_id END, false) AS is_live
        FROM (
            SELECT * FROM schedule_runs
            WHERE schedule_id = $1 AND (outcome = 'waiting' OR (outcome = 'started' AND ended_at IS NULL))
            UNION ALL
            SELECT * FROM schedule_runs
            WHERE schedule_id = $1 AND due_at = $2 AND outcome = 'started' AND ended_at IS NOT NULL
        ) AS r
        LEFT JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = r.task_id OFFSET 0) AS t ON true
        LEFT JOIN LATERAL (SELECT * FROM workflows WHERE workflows.workflow_id = r.workflow_id OFFSET 0) AS w ON true
        LEFT JOIN LATERAL (SELECT * FROM projects WHERE projects.project_id = r.project_id OFFSET 0) AS p ON true
        LEFT JOIN LATERAL (
            SELECT * FROM project_runs WHERE project_runs.run_id = p.current_run_id OFFSET 0
        ) AS current ON true
        ORDER BY r.due_at
        """,
        row.schedule_id,
        row.last_started_at,
    )


async def earlier(
    db: Database, row: ScheduleRow, due_times: Sequence[datetime]
) -> tuple[bool, dict[datetime, Earlier]]:
    """Whether the owner has a key, and the rows that these due times have already."""
    found = await fetch(
        db,
        Earlier,
        f"""
        SELECT owner.has_key, r.due_at, r.outcome, r.reason, r.until
        FROM (SELECT {named("has_a_key")}($2) AS has_key) AS owner
        LEFT JOIN schedule_runs r ON r.schedule_id = $1 AND r.due_at = ANY ($3)
        """,  # noqa: S608 - a name of our own
        row.schedule_id,
        row.user_id,
        list(due_times),
    )
    return found[0].has_key, {each.due_at: each for each in found if each.due_at is not None}


async def run_at(db: Database, schedule_id: UUID, due_at: datetime) -> ScheduleRunRow:
    query = "SELECT * FROM schedule_runs WHERE schedule_id = $1 AND due_at = $2"
    found = await fetchrow(db, ScheduleRunRow, query, schedule_id, due_at)
    assert found is not None, "its row was just written"
    return found


async def miss(db: Database, schedule_id: UUID, missed: Iterable[Planned]) -> None:
    """The key is the fence: a due time that has a row keeps it."""
    await db.executemany(
        """
        INSERT INTO schedule_runs (schedule_id, due_at, outcome, reason, cause, count, until)
        VALUES ($1, $2, 'missed', $3, 'time', $4, $5) ON CONFLICT DO NOTHING
        """,
        [(schedule_id, each.due_at, each.missed_because, each.count, each.until) for each in missed],
    )


async def write_run(db: Database, schedule_id: UUID, occurrence: Occurrence, verdict: Verdict) -> None:
    """A due time that is not started. One that waits keeps what it will start."""
    await db.execute(
        """
        INSERT INTO schedule_runs (schedule_id, due_at, outcome, reason, cause, start)
        VALUES ($1, $2, $3, $4, $5, $6::text::jsonb)
        ON CONFLICT (schedule_id, due_at) DO UPDATE
        SET outcome = excluded.outcome, reason = excluded.reason, cause = excluded.cause, start = excluded.start,
            decided_at = clock_timestamp()
        """,
        schedule_id,
        occurrence.due_at,
        verdict.outcome,
        verdict.reason,
        occurrence.cause,
        as_json(occurrence.start) if verdict.outcome == Outcome.WAITING else None,
    )


async def write_started(db: Database, row: Read, occurrence: Occurrence, run_id: UUID | None) -> Read:
    """The row of a due time that was started, the schedule's id in what it started, and the last start."""
    start, kind = occurrence.start, kind_of(occurrence.start)
    task_id = start["task_id"] if kind == Kind.TASK else None
    workflow_id = start["workflow"]["workflow_id"] if kind == Kind.WORKFLOW else None
    project_id = start["project_id"] if kind == Kind.PROJECT else None
    changed = await fetchrow(
        db,
        Read,
        """
        WITH run AS (
            INSERT INTO schedule_runs AS r (
                schedule_id, due_at, outcome, cause, task_id, workflow_id, project_id, run_id)
            VALUES ($1, $2, 'started', $3, $4, $5, $6, $7)
            ON CONFLICT (schedule_id, due_at) DO UPDATE
            SET outcome = excluded.outcome, reason = NULL, cause = excluded.cause, task_id = excluded.task_id,
                workflow_id = excluded.workflow_id, project_id = excluded.project_id, run_id = excluded.run_id,
                start = NULL, decided_at = clock_timestamp()
        ),
        task AS (UPDATE tasks SET schedule_id = $1 WHERE task_id = $4),
        workflow AS (UPDATE workflows SET schedule_id = $1 WHERE workflow_id = $5),
        project_run AS (UPDATE project_runs SET schedule_id = $1 WHERE run_id = $7)
        UPDATE schedules s SET last_started_at = greatest(s.last_started_at, $2) WHERE s.schedule_id = $1
        RETURNING s.*, $8::timestamptz AS read_at
        """,
        row.schedule_id,
        occurrence.due_at,
        occurrence.cause,
        task_id,
        workflow_id,
        project_id,
        run_id,
        row.read_at,
    )
    assert changed is not None, "it is locked"
    return changed


async def record_ends(db: Database, schedule_id: UUID, ends: Iterable[tuple[datetime, str]]) -> None:
    await db.executemany(
        """
        UPDATE schedule_runs SET ended_at = clock_timestamp(), ended_as = $3
        WHERE schedule_id = $1 AND due_at = $2
        """,
        [(schedule_id, due_at, ended_as) for due_at, ended_as in ends],
    )


async def give_up_waiting(db: Database, schedule_id: UUID, outcome: str, reason: str) -> None:
    await db.execute(
        """
        UPDATE schedule_runs SET outcome = $2, reason = $3, start = NULL
        WHERE schedule_id = $1 AND outcome = 'waiting'
        """,
        schedule_id,
        outcome,
        reason,
    )
