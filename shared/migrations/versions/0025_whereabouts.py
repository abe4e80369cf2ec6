"""A worker says where it is, so that who starts in its place can prove its death."""

from alembic import op

revision = "0025"
down_revision = "0024"


def upgrade() -> None:
    op.execute("ALTER TABLE workers ADD COLUMN whereabouts jsonb DEFAULT '{}'::jsonb NOT NULL")
