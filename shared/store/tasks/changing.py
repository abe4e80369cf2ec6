"""What people do to a task: cancel it, and give it a new life."""

from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts
from windlass.shared.store.record import fetchrow
from windlass.shared.store.rows import TaskRow


class Cancelled(TaskRow):
    """The task as it is now, and the tasks that have ended by it."""

    ended: list[Counts]


class Revived(Cancelled):
    """The same, and the tasks that were revived."""

    revived: list[Counts]


async def cancel(db: Database, task_id: UUID) -> Cancelled | None:
    row = await fetchrow(db, Cancelled, "SELECT (task).*, ended FROM cancel_task($1)", task_id)
    if row is not None:
        counting.ended(row.ended)
    return row


async def revive(db: Database, task_id: UUID) -> Revived | None:
    """A new life for the task and for the dependents that it had buried."""
    row = await fetchrow(db, Revived, "SELECT (task).*, revived, ended FROM revive_task($1)", task_id)
    if row is not None:
        counting.revived(row.revived)
        counting.ended(row.ended)
    return row
