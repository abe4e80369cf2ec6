"""Tasks are stored so that a long history stays as it is, and is swept often enough not to slow down what lives."""

from alembic import op

revision = "0004"
down_revision = "0003"

CHANGES = """
ALTER TABLE tasks SET (
    fillfactor = 85, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05
)
"""


def upgrade() -> None:
    op.execute(CHANGES)
