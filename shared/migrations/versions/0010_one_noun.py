"""An order is called an order: functions of the engine that have another name now."""

from alembic import op

revision = "0010"
down_revision = "0009"

GONE = ("intend_generation", "move_generation", "heed_weather")


def upgrade() -> None:
    for name in GONE:
        op.execute(f"DROP FUNCTION IF EXISTS {name}")
