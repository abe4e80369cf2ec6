"""The page: sessions of browsers, links that sign in once, workers told to drain, and pictures of one's own."""

from alembic import op

revision = "0015"
down_revision = "0013"

SESSIONS = """
CREATE TABLE sessions (
    session_hash bytea NOT NULL,
    key_id varchar NOT NULL,
    secure boolean NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT sessions_pkey PRIMARY KEY (session_hash)
)
"""

SESSION_LINKS = """
CREATE TABLE session_links (
    link_hash bytea NOT NULL,
    key_id varchar NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    expires_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT session_links_pkey PRIMARY KEY (link_hash)
)
"""

WORKERS = "ALTER TABLE workers ADD COLUMN drain_requested_at timestamptz, ADD COLUMN drain_reason varchar"

GENERATIONS = "ALTER TABLE generations ALTER COLUMN task_id DROP NOT NULL"

INDEXES = (
    "CREATE INDEX sessions_expiry ON sessions (expires_at)",
    "CREATE INDEX generations_user ON generations (user_id, generation_id)",
    """
    CREATE INDEX generations_interaction ON generations (interaction_id, generation_id)
    WHERE interaction_id IS NOT NULL
    """,
)


def upgrade() -> None:
    for statement in (SESSIONS, SESSION_LINKS, WORKERS, GENERATIONS, *INDEXES):
        op.execute(statement)
