"""Tasks keep the trace that they were submitted in, while somebody traces."""

from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    op.execute("ALTER TABLE tasks ADD COLUMN traceparent varchar")
