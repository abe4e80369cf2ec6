"""The steps that a task's attempts have finished, each kept before the attempt goes on."""

from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import TaskStepRow
from windlass.shared.store.tasks.claiming import Claimed
from windlass.shared.store.tasks.fencing import fence


async def save_step(db: Database, task: Claimed, name: str, result: str, elapsed_ms: int) -> bool:
    """Durable when it returns; `result` is JSON. False when the task is no longer this attempt's."""
    query = f"SELECT {named('save_step')}($1::text::jsonb, $2, $3::text::jsonb, $4)"
    saved: bool = await db.fetchval(query, fence(task), name, result, elapsed_ms)
    return saved


async def results_of_steps(db: Database, task_id: UUID) -> dict[str, Any]:
    """What each finished step came to."""
    rows = await fetch(db, TaskStepRow, "SELECT name, result FROM task_steps WHERE task_id = $1", task_id)
    return {row.name: row.result for row in rows}


async def finished_steps(db: Database, task_id: UUID) -> list[TaskStepRow]:
    """`name, attempt, elapsed_ms, created_at` of each, in the order in which they finished; not what they came to."""
    query = """
        SELECT name, attempt, elapsed_ms, created_at FROM task_steps WHERE task_id = $1 ORDER BY created_at, name
    """
    return await fetch(db, TaskStepRow, query, task_id)
