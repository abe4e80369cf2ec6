"""Suspects: how often a task lost its worker among few, and how many tasks a worker had when it was lost."""

from alembic import op

revision = "0009"
down_revision = "0008"


def upgrade() -> None:
    op.execute("ALTER TABLE tasks ADD COLUMN suspicion integer DEFAULT 0 NOT NULL")
    op.execute("ALTER TABLE workers ADD COLUMN lost_tasks integer DEFAULT 0 NOT NULL")
