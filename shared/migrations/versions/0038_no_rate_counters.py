"""Drops the counters of Dramatiq's rate limiters: no actor could reach the backend that wrote them."""

from alembic import op

revision = "0038"
down_revision = "0037"


def upgrade() -> None:
    op.execute("DROP TABLE rate_counters")
