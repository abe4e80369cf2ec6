"""Schedules follow the outbox: their ends are handled by a subscriber, and logs are written by whoever commits."""

from alembic import op

revision = "0031"
down_revision = "0030"

STATEMENTS = (
    "DELETE FROM untold WHERE subject = 'schedule'",
    """
    INSERT INTO outbox (feature, subject, move)
    SELECT DISTINCT 'schedule', schedule_id, 'migrate' FROM schedule_runs
    WHERE outcome = 'waiting' OR (outcome = 'started' AND ended_at IS NULL)
    """,
    "DROP INDEX schedule_events_unsaid",
    "ALTER TABLE schedule_events DROP COLUMN said",
)
"""An end that was not handled yet is found by looking at every schedule with an open run."""


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
