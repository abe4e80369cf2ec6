"""What people do to a task: cancel it, and give it a new life."""

from uuid import UUID

import asyncpg

from windlass.shared.db import Database
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts
from windlass.shared.store.functions import named
from windlass.shared.store.record import fetchrow
from windlass.shared.store.rows import TaskRow


class Cancelled(TaskRow):
    """The task as it is now, and the tasks that have ended by it."""

    ended: list[Counts]


class Revived(Cancelled):
    """The same, and the tasks that were revived."""

    revived: list[Counts]


async def cancel(db: Database, task_id: UUID) -> Cancelled | None:
    row = await fetchrow(db, Cancelled, f"SELECT * FROM {named('cancel_task')}($1)", task_id)  # noqa: S608 - a name of our own
    if row is not None:
        counting.ended(row.ended)
    return row


async def revive(db: Database, task_id: UUID) -> Revived | None:
    """A new life for the task and for the dependents that it had buried."""
    while True:
        try:
            row = await fetchrow(db, Revived, f"SELECT * FROM {named('revive_task')}($1)", task_id)  # noqa: S608 - a name of our own
            if row is not None:
                counting.revived(row.revived)
                counting.ended(row.ended)
            return row
        except asyncpg.DeadlockDetectedError:
            # Generation by generation it may come across a claim the other way round; one of the two begins again.
            continue
