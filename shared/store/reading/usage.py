"""What each attempt of a task has cost: the ends of attempts say what all had cost until then."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.record import Record, fetch
from windlass.shared.usage import FIGURES


class SoFar(Record):
    attempt: int
    usage: dict[str, Any]


async def by_attempt(db: Database, task_id: UUID, *, attempt: int, total: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Of each attempt that has cost something; the last of them may still run."""
    rows = await fetch(
        db,
        SoFar,
        """
        SELECT attempt, data -> 'usage_so_far' AS usage FROM task_events
        WHERE task_id = $1 AND data ? 'usage_so_far' ORDER BY seq
        """,
        task_id,
    )
    sums = {row.attempt: row.usage for row in rows} | {attempt: total}
    before: Mapping[str, Any] = {}
    spent = []
    for number, sum_so_far in sorted(sums.items()):
        own = {name: _less(sum_so_far.get(name), before.get(name)) for name in FIGURES}
        if any(own.values()):
            spent.append({"attempt": number, **own})
        before = sum_so_far
    return spent


def _less(after: float | None, before: float | None) -> float | None:
    if after is None:
        return None
    difference = after - (before or 0)
    return round(difference, 12) if isinstance(difference, float) else difference
