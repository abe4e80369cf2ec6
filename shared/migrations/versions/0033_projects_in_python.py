"""Projects follow the outbox: ends of runs are handled by a subscriber, and logs are written by whoever commits."""

from alembic import op

revision = "0033"
down_revision = "0032"

PENDING = """
WITH left_over AS (DELETE FROM untold WHERE subject = 'run' RETURNING *)
INSERT INTO outbox (feature, subject, task_id, life, seq, move, status, at)
SELECT l.subject, t.project_id::uuid, l.task_id, (l.move ->> 'life')::int, l.seq, l.move ->> 'move',
       l.move ->> 'status', (l.move ->> 'at')::timestamptz
FROM left_over l JOIN tasks t ON t.task_id = l.task_id WHERE t.project_id IS NOT NULL
"""
"""Moves that the SQL function of projects failed to handle: the subscriber handles them now."""

ENDED = """
INSERT INTO outbox (feature, subject, move)
SELECT 'run', r.project_id, 'migrate' FROM project_runs r
WHERE r.ended_at IS NULL
  AND NOT EXISTS (SELECT 1 FROM tasks t WHERE t.task_id = r.task_id AND t.life = r.life AND t.completed_at IS NULL)
"""
"""Open runs whose task has ended: the subscriber looks at each of these projects."""

STATEMENTS = (
    PENDING,
    ENDED,
    "DROP INDEX project_events_unsaid",
    "ALTER TABLE project_events DROP COLUMN said",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
