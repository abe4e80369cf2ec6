"""A task's history, read in pages from the last `seq` that the reader has seen."""

from collections.abc import Sequence
from uuid import UUID

from shared.db import Database, Row


async def page(db: Database, task_id: UUID, *, after: int, limit: int, types: Sequence[str] | None = None) -> list[Row]:
    return await db.fetch(
        """
        SELECT seq, type, at, attempt, data FROM task_events
        WHERE task_id = $1 AND seq > $2 AND ($3::text[] IS NULL OR type = ANY ($3))
        ORDER BY seq LIMIT $4
        """,
        task_id,
        after,
        types,
        limit,
    )


async def newest(db: Database, task_ids: Sequence[UUID]) -> dict[UUID, int]:
    """The last `seq` of each task: one question for all the streams of a process."""
    rows = await db.fetch("SELECT task_id, last_seq FROM tasks WHERE task_id = ANY ($1)", list(task_ids))
    return {row["task_id"]: row["last_seq"] for row in rows}
