"""Workflows as they are now: one with its nodes and edges, and lists of them, newest first."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.sql_fragments import words
from windlass.shared.states import LIVE
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import TaskRow, WorkflowNodeRow, WorkflowRow
from windlass.shared.workflow_states import WorkflowStatus

OF_A_WORKFLOW = "t.workflow_id = $1::uuid::text AND t.group_id = $1::uuid"


@dataclass(frozen=True)
class Wanted:
    """Which workflows: what is none does not matter."""

    status: Sequence[WorkflowStatus] | None = None
    name: str | None = None
    tag: Sequence[str] | None = None
    user_id: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None


class EdgeRow(Record):
    """Who waits for whom; what has no key in this workflow is named by its id."""

    parent_id: UUID
    child_id: UUID
    met_on: str


class NodeRow(WorkflowNodeRow):
    """With its barrier, the parents of its tasks besides the list, and those of them that may end in any way."""

    key: str
    status: str
    source: UUID
    children: int | None
    waits_for: list[str]
    after_end: list[str]


class WorkflowRead(WorkflowRow):
    is_behind: bool
    """Outbox rows wait for it: its counts may be older than its tasks."""


async def get(db: Database, workflow_id: UUID) -> WorkflowRead | None:
    return await fetchrow(
        db,
        WorkflowRead,
        f"""
        SELECT w.*, EXISTS (
            SELECT 1 FROM outbox o WHERE o.feature = '{Concern.WORKFLOW.word}' AND o.subject = w.workflow_id
        ) AS is_behind
        FROM workflows w WHERE w.workflow_id = $1
        """,  # noqa: S608 - a constant
        workflow_id,
    )


async def own(db: Database, workflow_ids: Sequence[UUID], *, of_user: str | None) -> set[UUID]:
    """Which of these are workflows, in all or of one user: a task that names one joins it."""
    rows = await fetch(
        db,
        WorkflowRow,
        "SELECT workflow_id FROM workflows WHERE workflow_id = ANY ($1) AND ($2::text IS NULL OR user_id = $2)",
        list(workflow_ids),
        of_user,
    )
    return {row.workflow_id for row in rows}


async def tasks_of(db: Database, workflow_id: UUID) -> list[TaskRow]:
    """The tasks that it counts, in the order of their ids: those that live and those that have ended have their own
    indexes."""
    return await fetch(
        db,
        TaskRow,
        f"""
        SELECT t.task_id, t.workflow_key, t.status FROM tasks t WHERE {OF_A_WORKFLOW} AND t.status IN {words(LIVE)}
        UNION ALL
        SELECT t.task_id, t.workflow_key, t.status FROM unnest(ARRAY['completed', 'dead', 'cancelled']) AS ended(status)
        CROSS JOIN LATERAL (
            SELECT t.task_id, t.workflow_key, t.status FROM tasks t
            WHERE t.status = ended.status AND t.status IN ('completed', 'dead', 'cancelled') AND {OF_A_WORKFLOW}
        ) AS t
        ORDER BY task_id
        """,  # noqa: S608 - written here
        workflow_id,
    )


async def nodes_of(db: Database, workflow_id: UUID) -> list[NodeRow]:
    return await fetch(
        db,
        NodeRow,
        """
        SELECT n.node_id, b.key, b.status, b.source, b.members AS children, n.error,
               coalesce(n.template -> 'depends_on', '[]') || coalesce(n.template -> 'depends_on_barriers', '[]')
               AS waits_for, coalesce(n.template -> 'after_end', '[]') AS after_end
        FROM workflow_nodes n JOIN barriers b ON b.barrier_id = n.node_id
        WHERE n.workflow_id = $1 ORDER BY n.node_id
        """,
        workflow_id,
    )


async def edges_of(db: Database, task_ids: Sequence[UUID]) -> list[EdgeRow]:
    """What these tasks wait for."""
    return await fetch(
        db,
        EdgeRow,
        """
        SELECT d.parent_id, d.child_id, d.met_on FROM task_dependencies d WHERE d.child_id = ANY ($1)
        ORDER BY d.child_id, d.parent_id
        """,
        list(task_ids),
    )


async def newest(
    db: Database, wanted: Wanted, *, owner: str | None, before: UUID | None, limit: int
) -> list[WorkflowRow]:
    """One branch for each status that is asked for, each an ordered scan that stops when the page is full."""
    values: list[Any] = []

    def place(value: Any) -> str:
        values.append(value)
        return f"${len(values)}"

    conditions = []
    if owner is not None:
        conditions.append(f"user_id = {place(owner)}")
    if wanted.user_id is not None:
        conditions.append(f"user_id = {place(wanted.user_id)}")
    if wanted.name is not None:
        conditions.append(f"name = {place(wanted.name)}")
    if wanted.tag:
        conditions.append(f"tags @> {place(list(wanted.tag))}::text[]")
    if wanted.created_after is not None:
        conditions.append(f"created_at > {place(wanted.created_after)}")
    if wanted.created_before is not None:
        conditions.append(f"created_at < {place(wanted.created_before)}")
    if before is not None:
        conditions.append(f"workflow_id < {place(before)}")
    most = place(limit)
    statuses = [f"status = {place(str(each))}" for each in wanted.status or ()] or ["true"]
    branches = [
        f"(SELECT * FROM workflows WHERE {' AND '.join([*conditions, status])} ORDER BY workflow_id DESC LIMIT {most})"  # noqa: S608 - placeholders
        for status in statuses
    ]
    query = f"SELECT * FROM ({' UNION ALL '.join(branches)}) AS page ORDER BY workflow_id DESC LIMIT {most}"  # noqa: S608
    return await fetch(db, WorkflowRow, query, *values)
