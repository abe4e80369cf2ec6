"""Removes levels: the functions of every build write the same outbox rows, so any of them may move any task.

`function_sets.level` stays, because the `migrate` of an earlier edition writes it.
"""

from alembic import op

revision = "0036"
down_revision = "0035"

SOUND = """is_sound_task(
    status, lane,
    least(attempt, retry_count, max_retries, interrupt_count, stall_count, rate_limited_count, report_count, unmet,
          last_seq - 1, concerns, life - 1),
    attempt, unmet, lease_expires_at, claim_token, worker_id, completed_at, result, error, held,
    held_at, due_at, available_at, job_open)"""

STATEMENTS = (
    f"""
    ALTER TABLE tasks DROP CONSTRAINT tasks_sound_check, DROP COLUMN level,
        ADD CONSTRAINT tasks_sound_check CHECK ({SOUND})
    """,
    "ALTER TABLE function_sets ALTER COLUMN level SET DEFAULT 0",
    "UPDATE project_items SET task = task - 'level' WHERE task ? 'level'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
