"""Tasks are found by what the client called the request that submitted them."""

from alembic import op

revision = "0019"
down_revision = "0017"


def upgrade() -> None:
    op.execute("ALTER TABLE tasks ADD COLUMN request_id varchar")
    op.execute("CREATE INDEX tasks_request ON tasks (request_id) WHERE request_id IS NOT NULL")
