"""The fence of an attempt's own writes: they are refused once its task belongs to another."""

from typing import Any

from windlass.shared.db import as_json
from windlass.shared.store.tasks.claiming import Claimed


def fence_of(task: Claimed) -> dict[str, Any]:
    """As `owns_task` in `move_order.sql` takes it."""
    return {"task_id": task.task_id, "attempt": task.attempt, "claim_token": task.claim_token}


def fence(task: Claimed) -> str:
    """As a statement takes it."""
    return as_json(fence_of(task))
