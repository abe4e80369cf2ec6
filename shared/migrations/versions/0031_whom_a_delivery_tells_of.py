"""Whose thing a webhook's body tells of, read from the body: a right to it is checked at every try and every read."""

from alembic import op

revision = "0031"
down_revision = "0028"


def upgrade() -> None:
    op.execute("""
        ALTER TABLE webhook_bodies
        ADD COLUMN user_id text GENERATED ALWAYS AS (body::jsonb #>> '{data,user_id}') STORED
    """)
