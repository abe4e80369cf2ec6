"""What is done to tasks from outside: they are cancelled, get a new life, are made to stand still and go on."""

from collections.abc import Sequence
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.holds import Hold
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts
from windlass.shared.store.functions import named
from windlass.shared.store.record import fetchrow
from windlass.shared.store.rows import TaskRow


class Cancelled(TaskRow):
    """The task as it is now, and the tasks that have ended by it."""

    ended: list[Counts]


class Revived(Cancelled):
    """The same, and the tasks that were revived. If it was not revived, a live task may have its key, or a feature may
    own it."""

    revived: list[Counts]
    duplicate_of: UUID | None
    is_owned: bool


async def cancel(db: Database, task_id: UUID) -> Cancelled | None:
    row = await fetchrow(db, Cancelled, f"SELECT * FROM {named('cancel_task')}($1)", task_id)  # noqa: S608 - a name of our own
    if row is not None:
        counting.ended(row.ended)
    return row


async def revive(db: Database, task_id: UUID) -> Revived | None:
    """A new life for the task and for the dependents that it had buried."""
    query = f"SELECT * FROM {named('revive_task')}($1)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, Revived, query, task_id)
    if row is not None:
        counting.revived(row.revived)
        counting.ended(row.ended)
    return row


async def hold(db: Database, task_ids: Sequence[UUID], reason: Hold) -> set[UUID]:
    """Makes those stand still that wait and have no open job; returns the ones that were not held for it already."""
    return set(await db.fetchval(f"SELECT {named('hold_tasks')}($1, $2)", list(task_ids), reason))


async def release(db: Database, task_ids: Sequence[UUID], reason: Hold) -> set[UUID]:
    """Takes the reason back; returns the ones that were held for it. Who has no other goes on."""
    return set(await db.fetchval(f"SELECT {named('release_tasks')}($1, $2)", list(task_ids), reason))
