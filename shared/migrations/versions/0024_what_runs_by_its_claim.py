"""What runs stands in the order of its claims: it is counted without walking over what has ended."""

from alembic import op

revision = "0024"
down_revision = "0023"

STATEMENTS = (
    "DROP INDEX tasks_of_worker",
    "DROP INDEX tasks_running",
    "ALTER TABLE tasks ADD COLUMN claim_xid xid8 DEFAULT '0' NOT NULL",
    "CREATE INDEX tasks_of_worker ON tasks (worker_id, claim_xid) WHERE status = 'running'",
    "CREATE INDEX tasks_running ON tasks (provider, claim_xid) WHERE status = 'running'",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
