"""Closes the function sets of earlier editions: they write no outbox rows, so they must not move a task any more."""

from alembic import context, op

from windlass.shared.migrations.fence import close_earlier_sets

revision = "0035"
down_revision = "0033"


def upgrade() -> None:
    close_earlier_sets(op.get_bind(), force=context.config.attributes.get("force", False))
