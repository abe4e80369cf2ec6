"""Steps of an order for one attempt alone, where a worker takes them for many at once."""

from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.order_steps import Intent, LatestOrder, intend_each, latest_of_each
from windlass.shared.store.tasks import Claimed


async def intend_one(db: Database, task: Claimed, intent: Intent) -> bool:
    (intended,) = await intend_each(db, [(task, intent)])
    return intended


async def latest_order(db: Database, task_id: UUID) -> LatestOrder | None:
    """The task's newest order, whatever became of it."""
    (found,) = await latest_of_each(db, [task_id])
    return found
