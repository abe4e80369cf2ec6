"""A worker says how many of its places hold no thread, and which of its queues they serve."""

from alembic import op

revision = "0027"
down_revision = "0026"

STATEMENTS = (
    "ALTER TABLE workers ADD COLUMN async_capacity integer DEFAULT 0 NOT NULL",
    "ALTER TABLE workers ADD COLUMN async_queues text[] DEFAULT '{}'::text[] NOT NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
