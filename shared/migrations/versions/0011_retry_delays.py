"""How long a task of its own wishes waits after a failure; none for all others."""

from alembic import op

revision = "0011"
down_revision = "0010"


def upgrade() -> None:
    op.execute("ALTER TABLE tasks ADD COLUMN retry_delays jsonb")
