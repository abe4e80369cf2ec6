"""What people do to a task: cancel it, and give it a new life."""

from uuid import UUID

import asyncpg

from windlass.shared.db import Database, Row
from windlass.shared.metrics import counting


async def cancel(db: Database, task_id: UUID) -> Row | None:
    row = await db.fetchrow("SELECT (task).*, ended FROM cancel_task($1)", task_id)
    return row and counting.changed(row)


async def revive(db: Database, task_id: UUID) -> Row | None:
    """A new life for the task and for the dependents that it had buried."""
    while True:
        try:
            row = await db.fetchrow("SELECT (task).*, revived, ended FROM revive_task($1)", task_id)
            return row and counting.changed(row)
        except asyncpg.DeadlockDetectedError:
            # Generation by generation it may come across a claim the other way round; one of the two begins again.
            continue
