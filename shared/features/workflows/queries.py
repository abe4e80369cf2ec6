"""The statements of workflows. Everything that writes needs the workflow's lock."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.concerns import Concern
from windlass.shared.db import Database, as_json
from windlass.shared.features.workflows.rules import MOST_ELEMENTS, Node, Tally
from windlass.shared.metrics.counting import Counts
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import GroupFailureRow, WorkflowRow

TASKS_AT_ONCE = 500
"""What one turn holds, releases or cancels."""


class Workflow(msgspec.Struct, kw_only=True):
    """A workflow as its last turn left it."""

    workflow_id: UUID
    user_id: str
    name: str
    status: str
    failure_threshold: int | None
    failures: int
    live: int
    completed: int
    dead: int
    cancelled: int
    cancel_requested: bool
    resumed_at: datetime | None
    completed_at: datetime | None


class Locked(msgspec.Struct):
    """A workflow under its lock, with its tasks as they are now."""

    now: datetime
    """Postgres' time, read after the lock."""
    workflow: Workflow
    failures: int
    tasks: list[Tally]
    nodes: list[Node]


class Elements(Record):
    """What is in the place where a node expects its list."""

    kind: str | None
    length: int | None
    keys_of_elements: list[str | None] | None


class NodeChange(msgspec.Struct):
    node_id: UUID
    status: str
    members: int | None
    error: dict[str, Any] | None


class Revived(Record):
    revived: list[Counts]
    ended: list[Counts]


class Changed(WorkflowRow):
    """The workflow as it is now, and its status before."""

    was: str


async def lock(db: Database, workflow_id: UUID) -> Locked | None:
    found = await db.fetchval(f"SELECT {named('lock_workflow')}($1)", workflow_id)
    return None if found is None else msgspec.convert(found, Locked)


async def elements(db: Database, node_id: UUID) -> Elements:
    found = await fetchrow(
        db,
        Elements,
        f"SELECT kind, length, keys AS keys_of_elements FROM {named('elements_of')}($1, $2)",  # noqa: S608 - our own
        node_id,
        MOST_ELEMENTS,
    )
    assert found is not None, "a function with outputs has a row"
    return found


async def store_elements(db: Database, node_id: UUID, length: int, keys: Sequence[str | None] | None) -> None:
    """Submits a task for each element."""
    refusal = await db.fetchval(f"SELECT {named('store_elements')}($1, $2, $3)", node_id, length, keys)
    assert refusal is None, f"the workflow is locked and not cancelled: {refusal}"


async def write_nodes(db: Database, changes: Sequence[NodeChange]) -> None:
    await db.execute(
        """
        WITH changed AS (
            SELECT * FROM jsonb_to_recordset($1::text::jsonb)
                AS c(node_id uuid, status text, members int, error jsonb)
        ), moved AS (
            UPDATE barriers b SET status = c.status, members = c.members FROM changed c WHERE b.barrier_id = c.node_id
        )
        UPDATE workflow_nodes n SET error = c.error FROM changed c WHERE n.node_id = c.node_id
        """,
        as_json(changes),
    )


async def close_group(db: Database, workflow_id: UUID) -> None:
    """From here on no task of the workflow starts, is revived, or joins it."""
    await db.execute("UPDATE task_groups SET is_closed = true WHERE group_id = $1", workflow_id)


async def record_failure(db: Database, workflow_id: UUID, node_id: UUID) -> None:
    """Of a node that has no tasks."""
    await db.execute(
        "INSERT INTO group_failures (group_id, task_id, life) VALUES ($1, $2, 1) ON CONFLICT DO NOTHING",
        workflow_id,
        node_id,
    )


async def failures(db: Database, workflow_id: UUID) -> list[GroupFailureRow]:
    return await fetch(db, GroupFailureRow, "SELECT * FROM group_failures WHERE group_id = $1", workflow_id)


async def forgive(db: Database, workflow_id: UUID, failures: Sequence[GroupFailureRow]) -> None:
    """These failures count no more, so tasks that were not held yet can start, too."""
    await db.execute(
        f"""
        WITH forgiven AS (
            DELETE FROM group_failures f USING unnest($2::uuid[], $3::int[]) AS seen(task_id, life)
            WHERE f.group_id = $1 AND f.task_id = seen.task_id AND f.life = seen.life
        )
        SELECT {named("wake_dispatcher")}()
        """,  # noqa: S608 - a name of our own
        workflow_id,
        [each.task_id for each in failures],
        [each.life for each in failures],
    )


async def lock_keys_of_failed(db: Database, workflow_id: UUID, mode: str) -> None:
    """Their dedupe keys. Keys are locked before everything else."""
    await db.execute(
        f"SELECT {named('lock_keys_of')}({named('failed_of')}($1, $2))",
        workflow_id,
        mode,
    )


async def revive_failed(db: Database, workflow_id: UUID, mode: str) -> Revived:
    """The held tasks are locked with them: all tasks of one transaction are locked in one order."""
    row = await fetchrow(
        db,
        Revived,
        f"""
        SELECT {named("counts_of")}(r.everybody) AS revived, {named("counts_of")}(r.ended) AS ended
        FROM {named("revive_tasks")}({named("failed_of")}($1, $2), {named("held_of")}($1, $3)) AS r
        """,  # noqa: S608 - names of our own
        workflow_id,
        mode,
        TASKS_AT_ONCE,
    )
    assert row is not None, "a function with outputs has a row"
    return row


async def changed(db: Database, workflow_id: UUID, was: str) -> Changed:
    row = await fetchrow(
        db, Changed, "SELECT w.*, $2::text AS was FROM workflows w WHERE w.workflow_id = $1", workflow_id, was
    )
    assert row is not None, "it is locked"
    return row


async def pending_of_schedule(db: Database, schedule_id: UUID) -> list[UUID]:
    """Workflows that the schedule started and whose moves were not handled yet."""
    rows = await db.fetch(
        f"""
        SELECT r.workflow_id FROM schedule_runs r
        WHERE r.schedule_id = $1 AND r.outcome = 'started' AND r.ended_at IS NULL AND r.workflow_id IS NOT NULL
          AND EXISTS (SELECT 1 FROM outbox o WHERE o.feature = '{Concern.WORKFLOW.word}' AND o.subject = r.workflow_id)
        ORDER BY r.workflow_id
        """,  # noqa: S608 - a constant
        schedule_id,
    )
    return [row["workflow_id"] for row in rows]


# Checks and restores


async def drifted(db: Database, *, at_most: int, changed_within_seconds: float) -> list[UUID]:
    """Workflows whose counts differ from their tasks, or whose nodes wait for a source that ended, although no outbox
    row waits for them: those that are not over, and those that changed lately."""
    rows = await db.fetch(
        f"""
        SELECT w.workflow_id FROM (
            (SELECT * FROM workflows w WHERE w.status = 'running' ORDER BY w.workflow_id DESC LIMIT $1)
            UNION ALL
            (SELECT * FROM workflows w WHERE w.status = 'escalated' ORDER BY w.workflow_id DESC LIMIT $1)
            UNION ALL
            (SELECT * FROM (SELECT * FROM workflows ORDER BY workflow_id DESC LIMIT $1) AS w
             WHERE w.status NOT IN ('running', 'escalated') AND w.updated_at >= now() - make_interval(secs => $2))
        ) AS w
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(c.tasks) FILTER (
                       WHERE c.status IN ('blocked', 'queued', 'running', 'retrying')), 0) AS live,
                   coalesce(sum(c.tasks) FILTER (WHERE c.status = 'completed'), 0) AS completed,
                   coalesce(sum(c.tasks) FILTER (WHERE c.status = 'dead'), 0) AS dead,
                   coalesce(sum(c.tasks) FILTER (WHERE c.status = 'cancelled'), 0) AS cancelled
            FROM (
                SELECT t.status, t.tasks FROM {named("tasks_of_workflow")}(w.workflow_id, false) AS t
                UNION ALL
                SELECT b.status, 1 FROM barriers b WHERE b.group_id = w.workflow_id
            ) AS c
        ) AS now
        WHERE ((w.live, w.completed, w.dead, w.cancelled) <> (now.live, now.completed, now.dead, now.cancelled)
               OR EXISTS (
                   SELECT 1 FROM barriers b JOIN tasks t ON t.task_id = b.source
                   WHERE b.group_id = w.workflow_id AND b.members IS NULL AND b.status = 'blocked'
                     AND t.status IN ('completed', 'dead', 'cancelled')))
          AND NOT EXISTS (
              SELECT 1 FROM outbox o WHERE o.feature = '{Concern.WORKFLOW.word}' AND o.subject = w.workflow_id)
        """,  # noqa: S608 - names of our own
        at_most,
        changed_within_seconds,
    )
    return [row["workflow_id"] for row in rows]


async def mark(db: Database, workflow_ids: Sequence[UUID], move: str) -> None:
    """Makes the orchestrator count them again."""
    await db.execute(
        f"SELECT {named('write_event')}('{Concern.WORKFLOW.word}', id, $2) FROM unnest($1::uuid[]) AS id",  # noqa: S608
        list(workflow_ids),
        move,
    )


async def advance_numbers(db: Database, step: int) -> list[UUID]:
    """Of all workflows. Returns those that are not over; their histories have an event about it."""
    rows = await db.fetch(
        """
        WITH advanced AS (UPDATE workflows SET last_seq = last_seq + $1 RETURNING workflow_id, last_seq, status)
        INSERT INTO workflow_events (workflow_id, seq, type, data)
        SELECT a.workflow_id, a.last_seq, 'restore', jsonb_build_object('status', a.status, 'was', a.status)
        FROM advanced a WHERE a.status IN ('running', 'escalated') RETURNING workflow_id
        """,
        step,
    )
    return [row["workflow_id"] for row in rows]
