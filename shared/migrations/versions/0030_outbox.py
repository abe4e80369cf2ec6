"""The outbox: moves of tasks that features handle after the move is committed."""

from alembic import op

revision = "0030"
down_revision = "0029"

OUTBOX = """
CREATE TABLE outbox (
    id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT outbox_pkey PRIMARY KEY,
    xid xid8 DEFAULT pg_current_xact_id() NOT NULL,
    feature varchar NOT NULL,
    subject uuid NOT NULL,
    task_id uuid,
    life integer,
    seq integer,
    move varchar NOT NULL,
    status varchar,
    at timestamptz DEFAULT clock_timestamp() NOT NULL,
    data jsonb
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000)
"""

SUBJECTS = """
CREATE TABLE outbox_subjects (
    feature varchar NOT NULL,
    subject uuid NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    error varchar NOT NULL,
    failed_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    next_try_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT outbox_subjects_pkey PRIMARY KEY (feature, subject)
)
"""

PENDING = """
WITH left_over AS (DELETE FROM untold WHERE subject = 'memory' RETURNING *)
INSERT INTO outbox (feature, subject, task_id, life, seq, move, status, at)
SELECT subject, task_id, task_id, (move ->> 'life')::int, seq, move ->> 'move', move ->> 'status',
       (move ->> 'at')::timestamptz
FROM left_over
"""
"""Moves that memory's SQL function failed to handle: the subscriber handles them now."""

STATEMENTS = (
    OUTBOX,
    "CREATE INDEX outbox_xid ON outbox (xid)",
    "CREATE INDEX outbox_subject ON outbox (feature, subject, task_id, seq)",
    SUBJECTS,
    PENDING,
    "ALTER TABLE service_reports DROP CONSTRAINT service_reports_service_check",
    """
    ALTER TABLE service_reports ADD CONSTRAINT service_reports_service_check
    CHECK (service IN ('dispatcher', 'janitor', 'orchestrator'))
    """,
)


def upgrade() -> None:
    for statement in STATEMENTS:
        op.execute(statement)
