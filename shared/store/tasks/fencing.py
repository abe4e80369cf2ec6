"""The fence of an attempt's own writes: they are refused once its task belongs to another."""

from windlass.shared.db import as_json
from windlass.shared.store.tasks.claiming import Claimed


def fence(task: Claimed) -> str:
    """As `owns_task` in `move_order.sql` takes it."""
    return as_json({"task_id": task.task_id, "attempt": task.attempt, "claim_token": task.claim_token})
