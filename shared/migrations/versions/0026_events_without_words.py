"""An agent event that has no words yet is in no index of them: its end writes one entry less."""

from alembic import op

revision = "0026"
down_revision = "0025"

STATEMENTS = (
    "DROP INDEX agent_events_lexemes",
    "CREATE INDEX agent_events_lexemes ON agent_events USING gin (lexemes) WHERE lexemes IS NOT NULL",
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
