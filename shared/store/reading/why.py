"""What the rows say about one task's way to its start."""

from collections.abc import Sequence
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.explanation import KeyView, TaskView
from windlass.shared.states import WAITING, Lane, State
from windlass.shared.store import functions
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


async def look_at(db: Database, task: TaskRow, queues: Sequence[str]) -> TaskView:
    """Where it stands among those that wait in these queues, all of its provider."""
    rung = task.doorbell_token is not None
    runs_alone = await db.fetchval(f"SELECT {named('runs_alone')}($1)", task.suspicion)
    counted = await (_count_rung_before(db, task, queues) if rung else _count_due_before(db, task, queues))
    return TaskView(
        status=State(task.status),
        queue=task.queue,
        lane=Lane(task.lane),
        available_at=task.due_at or task.available_at,
        expires_at=task.expires_at,
        worker_id=task.worker_id,
        started_at=task.started_at,
        completed_at=task.completed_at,
        rung=rung,
        holds_a_slot=task.job_open,
        held=task.held,
        held_at=task.held_at,
        key=await _key(db, task),
        is_of_a_newer_level=task.level > functions.LEVEL,
        runs_alone=runs_alone,
        alone_before=await _count_alone_before(db, task) if runs_alone else 0,
        ahead=counted,
        all_counted=counted < AHEAD_COUNTED,
        unmet=await _unmet(db, task.task_id) if task.status == State.BLOCKED else (),
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


async def _count_rung_before(db: Database, task: TaskRow, queues: Sequence[str]) -> int:
    """No more are rung for than there are places, so all of them are looked at: a limit would make the planner walk
    through all that live instead."""
    number: int = await db.fetchval(
        f"""
        SELECT least(count(*), $5) FROM (
            SELECT t.priority, t.available_at, t.task_id, t.suspicion, t.queue FROM tasks t
            WHERE t.provider = $1 AND t.status IN ('queued', 'retrying') AND t.doorbell_token IS NOT NULL OFFSET 0
        ) AS rung
        WHERE NOT {named("runs_alone")}(rung.suspicion) AND rung.queue = ANY ($6)
          AND (rung.priority, rung.available_at, rung.task_id) < ($2, $3, $4)
        """,  # noqa: S608 - a name of our own
        task.provider,
        task.priority,
        task.available_at,
        task.task_id,
        AHEAD_COUNTED,
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
            SELECT * FROM tasks WHERE status IN ('queued', 'retrying') AND doorbell_token IS NOT NULL
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
        SELECT p.task_id, p.status FROM task_dependencies d JOIN tasks p ON p.task_id = d.parent_id
        WHERE d.child_id = $1 AND p.status <> 'completed' ORDER BY p.task_id
        """,
        task_id,
    )
    return [dict(row) for row in rows]
