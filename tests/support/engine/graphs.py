"""Short ways to end the tasks of a graph."""

from uuid import UUID

from tests.support.engine.store import Engine

ROUNDS = 15
COMPLETE_IT = "UPDATE tasks SET status = 'completed', completed_at = now(), lease_expires_at = NULL WHERE task_id = $1"


async def complete(engine: Engine, task_id: UUID) -> None:
    assert await engine.finish(await engine.start(task_id)) == "completed"


async def bury(engine: Engine, task_id: UUID) -> None:
    assert await engine.finish(await engine.start(task_id), "bury") == "dead"
