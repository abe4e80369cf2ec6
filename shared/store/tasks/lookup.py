"""One task as it is now, and which tasks there are."""

from collections.abc import Sequence
from uuid import UUID

from windlass.shared.db import Database, Row

TASK_FIELDS = (
    "task_id", "actor", "task_type", "provider", "queue", "lane", "status", "priority", "payload", "result", "error",
    "progress", "attempt", "retry_count", "max_retries", "interrupt_count", "available_at", "expires_at",
    "timeout_seconds", "created_at", "updated_at", "started_at", "completed_at", "worker_id", "heartbeat_at",
    "lease_expires_at", "cancel_requested", "user_id", "tags", "project_id", "workflow_id", "workflow_run_id",
    "interaction_id", "parent_task_id", "depends_on", "dedupe_key", "provider_job_id", "exit_code",
)  # fmt: skip
"""The columns that a reader of a task is shown."""


async def get(db: Database, task_id: UUID) -> Row | None:
    return await db.fetchrow("SELECT * FROM tasks WHERE task_id = $1", task_id)


async def existing(db: Database, task_ids: Sequence[UUID], *, of_user: str | None) -> set[UUID]:
    """Which of these there are, in all or of one user. That never changes: tasks stay, and so does their owner."""
    rows = await db.fetch(
        "SELECT task_id FROM tasks WHERE task_id = ANY ($1) AND ($2::text IS NULL OR user_id = $2)",
        list(task_ids),
        of_user,
    )
    return {row["task_id"] for row in rows}
