"""One task as it is now, and which tasks there are."""

from collections.abc import Sequence
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.record import columns_of, fetch, fetchrow
from windlass.shared.store.rows import TaskRow

OUR_OWN = {
    "checkpoint", "stall_count", "rate_limited_count", "max_age_seconds", "claim_token", "claim_xid", "turn_at",
    "report_count", "last_seq", "unmet", "error_fingerprint", "job_open",
    "traceparent", "suspicion", "retry_delays", "concerns", "life", "held_at", "due_at", "request_id",
    "asked_at", "ask_expires_at", "webhook_id", "group_id",
}  # fmt: skip
"""What the engine keeps for itself."""

TASK_FIELDS = tuple(column for column in columns_of(TaskRow) if column not in OUR_OWN)
"""The columns that a reader of a task is shown."""


async def get(db: Database, task_id: UUID) -> TaskRow | None:
    return await fetchrow(db, TaskRow, "SELECT * FROM tasks WHERE task_id = $1", task_id)


async def owner_of(db: Database, task_id: UUID) -> str:
    """Who has submitted it, which never changes."""
    user_id: str = await db.fetchval("SELECT user_id FROM tasks WHERE task_id = $1", task_id)
    return user_id


async def existing(db: Database, task_ids: Sequence[UUID], *, of_user: str | None) -> set[UUID]:
    """Which of these there are, in all or of one user. That never changes: tasks stay, and so does their owner."""
    rows = await fetch(
        db,
        TaskRow,
        "SELECT task_id FROM tasks WHERE task_id = ANY ($1) AND ($2::text IS NULL OR user_id = $2)",
        list(task_ids),
        of_user,
    )
    return {row.task_id for row in rows}
