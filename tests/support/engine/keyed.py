"""Short ways to say what happens to tasks with a concurrency key."""

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from tests.support.engine.store import Engine
from windlass.shared.concerns import Concern


def with_key(key: str) -> dict[str, Any]:
    """What a submit says of a task with that key."""
    return {"concurrency_key": key, "concerns": Concern.KEY.value}


async def set_key_limit(engine: Engine, limit: int | None, *, actor: str = "probe") -> None:
    """As it is configured, without a word to anybody."""
    await engine.sql(
        "INSERT INTO actors VALUES ($1, $2) ON CONFLICT (name) DO UPDATE SET concurrency_limit = $2", actor, limit
    )


async def parked(engine: Engine, task_ids: Sequence[UUID]) -> list[UUID]:
    """Those of them that are."""
    rows = await engine.pool.fetch(
        "SELECT task_id FROM tasks WHERE task_id = ANY ($1) AND 'key' = ANY (held) ORDER BY task_id", list(task_ids)
    )
    return [row["task_id"] for row in rows]


async def most_at_once(engine: Engine) -> dict[str, int]:
    """By key, how many ran at once, as their events tell it."""
    rows = await engine.pool.fetch(MOST_AT_ONCE)
    return {row["concurrency_key"]: row["most"] for row in rows}


MOST_AT_ONCE = """
SELECT concurrency_key, max(running)::int AS most FROM (
    SELECT t.concurrency_key, sum(CASE e.type WHEN 'claim' THEN 1 ELSE -1 END) OVER (
        PARTITION BY t.concurrency_key ORDER BY e.at, e.type = 'claim') AS running
    FROM task_events e JOIN tasks t USING (task_id)
    WHERE t.concurrency_key IS NOT NULL
      AND (e.type IN ('claim', 'stall') OR (e.data ? 'elapsed_ms' AND e.type <> 'claim'))
) AS steps GROUP BY concurrency_key
"""
