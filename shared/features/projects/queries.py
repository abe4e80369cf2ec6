"""The statements of projects. Everything that writes needs the project's lock."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.metrics.counting import Counts
from windlass.shared.store.functions import named
from windlass.shared.store.projects.families import family
from windlass.shared.store.projects.looking_after import ORPHANS
from windlass.shared.store.record import Record, fetch, fetchrow


class Queue(msgspec.Struct, kw_only=True):
    """A project as far as its runs are concerned."""

    project_id: UUID
    user_id: str
    on_failure: str
    state: str
    mode: str | None
    current_run_id: UUID | None
    forced_at: datetime | None
    started_at: datetime | None
    stopped_at: datetime | None
    stop_reason: str | None
    last_error: dict[str, Any] | None
    archived_at: datetime | None


class Run(msgspec.Struct, kw_only=True):
    run_id: UUID
    item_id: UUID
    task_id: UUID
    life: int
    attempts_before: int = 0
    mode: str
    named: bool
    state: str = "running"
    started_at: datetime
    ended_at: datetime | None = None
    error: dict[str, Any] | None = None
    receipt: dict[str, Any] | None = None
    revived_from: UUID | None = None
    schedule_id: UUID | None = None


class RunTask(msgspec.Struct):
    """The task of a run, as it is now."""

    status: str
    life: int
    ended_at: datetime | None
    error: dict[str, Any] | None


class Item(msgspec.Struct):
    item_id: UUID
    position: str
    title: str | None
    state: str
    last_run_id: UUID | None
    actor: str
    provider: str


class Choice(msgspec.Struct):
    """The run's item, the first that waits, the first that waits and is not the run's, and the first position."""

    bound: Item | None
    first: Item | None
    next: Item | None
    head: str | None


class Locked(msgspec.Struct):
    """A project under its lock."""

    now: datetime
    """Postgres' time, read after the lock."""
    queue: Queue
    run: Run | None
    """The current run. It has ended if the project is being force-stopped and descendants of its task are alive."""
    task: RunTask | None
    choice: Choice


class FamilyMember(Record):
    """A task of a run, or one that descends from it."""

    task_id: UUID
    worker_id: str | None
    attempt: int
    status: str
    completed_at: datetime | None
    is_open: bool
    event: str | None
    proof: dict[str, Any] | None
    has_duration: bool


class Outcome(msgspec.Struct):
    """The tasks that an operation of the engine revived and ended."""

    revived: list[Counts]
    ended: list[Counts]
    changed: int | None = None
    """How many of the wanted tasks were revived."""


class RunOfTask(Record):
    """A run's task, with the last run that it had."""

    task_id: UUID
    status: str
    life: int
    attempt: int
    run_id: UUID
    item_id: UUID


async def lock(db: Database, project_id: UUID) -> Locked | None:
    found = await db.fetchval(f"SELECT {named('lock_project')}($1)", project_id)
    return None if found is None else msgspec.convert(found, Locked)


async def choice(db: Database, run: Run | None, project_id: UUID) -> Choice:
    """As the backlog is after a change."""
    query = f"SELECT {named('choice_of')}($1, $2, $3)"
    ids = (run.run_id, run.item_id) if run is not None else (None, None)
    return msgspec.convert(await db.fetchval(query, project_id, *ids), Choice)


async def is_unclaimed(db: Database, run: Run) -> bool:
    """Whether no worker has claimed the run's task. It is locked first, so that none claims it from here on."""
    found: bool | None = await db.fetchval(
        """
        SELECT life = $2 AND attempt = $3 AND status IN ('blocked', 'queued', 'retrying') FROM tasks
        WHERE task_id = $1 FOR NO KEY UPDATE
        """,
        run.task_id,
        run.life,
        run.attempts_before,
    )
    return bool(found)


async def open_jobs_and_family(db: Database, root: UUID) -> tuple[list[dict[str, Any]], list[FamilyMember]]:
    """The open jobs at providers of a task and its descendants, and each of them with the event that ended its last
    attempt. A cancel that has no duration and was not requested before found the task waiting."""
    members = await fetch(
        db,
        FamilyMember,
        f"""
        {family("$1::uuid")}
        SELECT t.task_id, t.worker_id, t.attempt, t.status, t.completed_at, t.completed_at IS NULL AS is_open,
               last.type AS event, last.data -> 'proof' AS proof,
               coalesce(last.data ? 'elapsed_ms', false) AS has_duration
        FROM family JOIN tasks t ON t.task_id = family.task_id
        LEFT JOIN LATERAL (
            SELECT e.type, e.data FROM task_events e
            WHERE e.task_id = t.task_id AND e.attempt = t.attempt AND e.seq > coalesce((
                    SELECT max(r.seq) FROM task_events r WHERE r.task_id = t.task_id AND r.type = 'revive'), 0)
              AND (e.type IN ('complete', 'retry', 'bury', 'interrupt', 'stall')
                   OR (e.type = 'cancel' AND (e.data ? 'elapsed_ms' OR e.data ? 'proof' OR EXISTS (
                       SELECT 1 FROM task_events c
                       WHERE c.task_id = t.task_id AND c.type = 'cancel-requested' AND c.seq > coalesce((
                           SELECT max(r.seq) FROM task_events r
                           WHERE r.task_id = t.task_id AND r.type = 'revive'), 0)))))
            ORDER BY e.seq DESC LIMIT 1
        ) AS last ON true
        ORDER BY t.task_id
        """,  # noqa: S608 - a text of our own
        root,
    )
    jobs = await db.fetchval(
        f"""
        {family("$1::uuid")}
        SELECT coalesce(jsonb_agg(jsonb_build_object(
            'task_id', t.task_id, 'provider', t.provider, 'provider_job_id', t.provider_job_id,
            'since', t.started_at) ORDER BY t.task_id), '[]')
        FROM family JOIN tasks t ON t.task_id = family.task_id WHERE t.job_open
        """,  # noqa: S608 - a text of our own
        root,
    )
    return jobs, members


async def to_cancel(db: Database, project_id: UUID) -> list[UUID]:
    """Live descendants of a run that is being force-stopped, as far as they were not asked to stop."""
    rows = await db.fetch(
        f"""
        {
            family(
                "(SELECT r.task_id FROM projects p JOIN project_runs r ON r.run_id = p.current_run_id"
                " WHERE p.project_id = $1 AND p.forced_at IS NOT NULL)"
            )
        }
        SELECT t.task_id FROM family JOIN tasks t ON t.task_id = family.task_id
        WHERE t.completed_at IS NULL AND NOT t.cancel_requested ORDER BY t.task_id
        """,  # noqa: S608 - a text of our own
        project_id,
    )
    return [row["task_id"] for row in rows]


async def cancel(db: Database, task_ids: Sequence[UUID], reason: str) -> list[UUID]:
    """Returns those that it changed."""
    query = f"SELECT changed FROM {named('cancel_tasks')}($1, $2)"  # noqa: S608 - a name of our own
    changed: list[UUID] = await db.fetchval(query, list(task_ids), reason)
    return changed


async def alter(db: Database, project_id: UUID, changes: dict[str, Any]) -> None:
    await db.execute(
        """
        UPDATE projects SET
            name = coalesce($2, name), defaults = coalesce($3, defaults), on_failure = coalesce($4, on_failure),
            updated_at = clock_timestamp()
        WHERE project_id = $1
        """,
        project_id,
        changes.get("name"),
        changes.get("defaults"),
        changes.get("on_failure"),
    )


# Revivals


async def run_of_ended_task(db: Database, task_id: UUID) -> RunOfTask | None:
    """Under the project's lock no other process revives it."""
    return await fetchrow(
        db,
        RunOfTask,
        """
        SELECT t.task_id, t.status, t.life, t.attempt, r.run_id, r.item_id
        FROM tasks t JOIN project_runs r ON r.task_id = t.task_id
        WHERE t.task_id = $1 AND t.status IN ('dead', 'cancelled') ORDER BY r.life DESC LIMIT 1
        """,
        task_id,
    )


async def revived_without_run(db: Database, project_id: UUID, task_ids: Iterable[UUID]) -> RunOfTask | None:
    """A live task of a run whose present life has no run: an older build revived it and failed to open one."""
    return await fetchrow(
        db,
        RunOfTask,
        f"""
        SELECT t.task_id, t.status, t.life, t.attempt, last.run_id, last.item_id
        FROM unnest($2::uuid[]) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        CROSS JOIN LATERAL (
            SELECT r.run_id, r.item_id, r.life FROM project_runs r
            WHERE r.task_id = t.task_id ORDER BY r.life DESC LIMIT 1
        ) AS last
        WHERE t.project_id = $1::uuid::text AND t.concerns & {Concern.RUN.value} <> 0 AND t.completed_at IS NULL
          AND last.life < t.life
        ORDER BY t.task_id LIMIT 1
        """,  # noqa: S608 - a constant
        project_id,
        list(task_ids),
    )


async def projects_of(db: Database, task_ids: Sequence[UUID]) -> list[UUID]:
    """The projects of runs with these tasks, in the order of their ids."""
    query = "SELECT DISTINCT project_id FROM project_runs WHERE task_id = ANY ($1) ORDER BY project_id"
    return [row["project_id"] for row in await db.fetch(query, list(task_ids))]


class FailedItem(Record):
    """An item that was failed by one of these tasks, and has not been changed since."""

    item_id: UUID
    project_id: UUID


async def failed_by(db: Database, task_ids: Sequence[UUID]) -> list[FailedItem]:
    """The last task first: each item goes to the head, so the first task's item becomes the first."""
    return await fetch(
        db,
        FailedItem,
        """
        SELECT i.item_id, i.project_id FROM unnest($1::uuid[]) AS one(task_id)
        JOIN project_runs r ON r.task_id = one.task_id
        JOIN project_items i ON i.item_id = r.item_id AND i.last_run_id = r.run_id
        JOIN projects p ON p.project_id = i.project_id
        WHERE i.state = 'failed' AND r.ended_at IS NOT NULL AND p.archived_at IS NULL
        ORDER BY one.task_id DESC
        """,
        list(task_ids),
    )


# What is pending


async def pending_of_schedule(db: Database, schedule_id: UUID) -> list[UUID]:
    """Projects that the schedule started and whose moves were not handled yet."""
    rows = await db.fetch(
        f"""
        SELECT DISTINCT r.project_id FROM schedule_runs r
        WHERE r.schedule_id = $1 AND r.outcome = 'started' AND r.ended_at IS NULL AND r.project_id IS NOT NULL
          AND EXISTS (SELECT 1 FROM outbox o WHERE o.feature = '{Concern.RUN.word}' AND o.subject = r.project_id)
        ORDER BY r.project_id
        """,  # noqa: S608 - a constant
        schedule_id,
    )
    return [row["project_id"] for row in rows]


# After a restore


async def ended_runs(db: Database) -> int:
    """How many open runs have a task that ended or does not exist any more."""
    number: int = await db.fetchval(f"SELECT count(*)::int FROM ({ORPHANS}) AS orphans")  # noqa: S608 - a text of our own
    return number


async def advance_numbers(db: Database, step: int) -> list[UUID]:
    """Of all projects that have a history."""
    query = "UPDATE projects SET last_seq = last_seq + $1 WHERE last_seq > 0 RETURNING project_id"
    return sorted(row["project_id"] for row in await db.fetch(query, step))
