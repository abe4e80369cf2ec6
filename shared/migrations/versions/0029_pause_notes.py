"""Keeps the reason that a person gave for pausing a schedule."""

from alembic import op

revision = "0029"
down_revision = "0028"


def upgrade() -> None:
    op.execute("ALTER TABLE schedules ADD COLUMN pause_note varchar")
