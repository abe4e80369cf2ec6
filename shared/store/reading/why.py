"""What the rows say about one task's way to its start."""

from collections.abc import Sequence
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.explanation import KeyView, TaskView
from windlass.shared.holds import Hold
from windlass.shared.sql_fragments import due
from windlass.shared.states import WAITING, Lane, State
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import TaskRow

AHEAD_COUNTED = 1000
"""Who stands further back than this is told "at least": looking costs the same however long the backlog is."""


class KeyFacts(Record):
    """Of a task's concurrency key."""

    most: int | None
    taken: int
    before: int


class Stop(Record):
    """Why nothing of a task's group starts."""

    is_closed: bool
    has_too_many_failures: bool


async def look_at(db: Database, task: TaskRow, queues: Sequence[str]) -> TaskView:
    """Where it stands among those that wait in these queues, all of its provider."""
    runs_alone = await db.fetchval(f"SELECT {named('runs_alone')}($1)", task.suspicion)
    stop = await _stop(db, task)
    counted = await (_count_resumes_before if task.job_open else _count_due_before)(db, task, queues)
    return TaskView(
        status=State(task.status),
        queue=task.queue,
        lane=Lane(task.lane),
        available_at=task.due_at or task.available_at,
        expires_at=task.expires_at,
        worker_id=task.worker_id,
        started_at=task.started_at,
        completed_at=task.completed_at,
        holds_a_slot=task.job_open,
        held=task.held
        or ([Hold.WORKFLOW] if stop is not None and stop.has_too_many_failures and not stop.is_closed else []),
        held_at=task.held_at,
        is_given_up=stop is not None and stop.is_closed,
        key=await _key(db, task),
        runs_alone=runs_alone,
        alone_before=await _count_alone_before(db, task) if runs_alone else 0,
        ahead=counted,
        all_counted=counted < AHEAD_COUNTED,
        unmet=await _unmet(db, task.task_id) if task.status == State.BLOCKED else (),
        asked_at=task.asked_at,
        ask_expires_at=task.ask_expires_at,
        ask=None if task.approval is None else task.approval.get("message"),
    )


async def _stop(db: Database, task: TaskRow) -> Stop | None:
    """A stopped group's waiting tasks are held or cancelled, page by page. Until then no claim of them is granted."""
    if task.group_id is None or task.job_open or task.status not in WAITING:
        return None
    return await fetchrow(
        db,
        Stop,
        """
        SELECT g.is_closed, coalesce(g.failure_limit <= (
            SELECT count(*) FROM group_failures f WHERE f.group_id = g.group_id), false) AS has_too_many_failures
        FROM task_groups g WHERE g.group_id = $1
        """,
        task.group_id,
    )


async def _key(db: Database, task: TaskRow) -> KeyView | None:
    if task.concurrency_key is None or task.status not in WAITING:
        return None
    facts = await fetchrow(db, KeyFacts, f"SELECT * FROM {named('key_facts')}($1, now())", task.task_id)  # noqa: S608 - a name of our own
    assert facts is not None, "a function with outputs has a row"
    return KeyView(task.concurrency_key, facts.most, facts.taken, facts.before)


async def _count_due_before(db: Database, task: TaskRow, queues: Sequence[str]) -> int:
    """The due tasks of these queues and its lane that go before it: by priority, then by age."""
    number: int = await db.fetchval(
        f"SELECT {named('due_before')}($1, $2, $3, $4, $5, $6)",
        list(queues),
        task.lane,
        task.priority,
        task.due_at or task.available_at,
        task.task_id,
        AHEAD_COUNTED,
    )
    return number


async def _count_resumes_before(db: Database, task: TaskRow, queues: Sequence[str]) -> int:
    """Those that go on waiting for their open jobs, and go before it."""
    number: int = await db.fetchval(
        f"""
        SELECT count(*) FROM (SELECT * FROM tasks WHERE provider = $1 AND job_open OFFSET 0) AS t
        WHERE t.queue = ANY ($5) AND {due("now()")} AND (t.priority, t.available_at, t.task_id) < ($2, $3, $4)
        """,  # noqa: S608 - the states' own words
        task.provider,
        task.priority,
        task.available_at,
        task.task_id,
        list(queues),
    )
    return number


async def _count_alone_before(db: Database, task: TaskRow) -> int:
    """Of all providers: the processes for those that run alone take whoever comes first."""
    number: int = await db.fetchval(
        f"""
        SELECT count(*) FROM (
            SELECT * FROM tasks WHERE status = 'running'
            UNION ALL
            SELECT * FROM tasks t WHERE t.suspicion >= 2 AND {due("now()")}
        ) AS t
        WHERE {named("runs_alone")}(t.suspicion) AND t.task_id <> $3
          AND (t.status = 'running' OR (t.priority, t.available_at, t.task_id) < ($1, $2, $3))
        """,  # noqa: S608 - a name of our own
        task.priority,
        task.available_at,
        task.task_id,
    )
    return number


async def _unmet(db: Database, task_id: UUID) -> list[dict[str, object]]:
    rows = await fetch(
        db,
        TaskRow,
        """
        SELECT d.parent_id AS task_id, coalesce(p.status, b.status) AS status FROM task_dependencies d
        LEFT JOIN tasks p ON p.task_id = d.parent_id AND NOT d.by_barrier
        LEFT JOIN barriers b ON b.barrier_id = d.parent_id AND d.by_barrier
        WHERE d.child_id = $1 AND coalesce(p.status, b.status) <> 'completed'
          AND NOT (d.met_on = 'ended' AND coalesce(p.status, b.status) IN ('dead', 'cancelled'))
        ORDER BY d.parent_id
        """,
        task_id,
    )
    return [dict(row) for row in rows]
