"""Schedules: what is started when, a row for each time that one was due, and their histories."""

from alembic import op

revision = "0023"
down_revision = "0022"

SCHEDULES = """
CREATE TABLE schedules (
    schedule_id uuid NOT NULL CONSTRAINT schedules_pkey PRIMARY KEY,
    user_id varchar NOT NULL,
    name varchar NOT NULL,
    cron varchar,
    every_seconds integer,
    timezone varchar DEFAULT 'UTC' NOT NULL,
    target jsonb DEFAULT '{}'::jsonb NOT NULL,
    kind varchar NOT NULL,
    prepared jsonb DEFAULT '{}'::jsonb NOT NULL,
    overlap varchar NOT NULL,
    catch_up varchar NOT NULL,
    catch_up_window_seconds double precision NOT NULL,
    jitter_seconds double precision NOT NULL,
    pause_after_failures integer,
    state varchar DEFAULT 'active' NOT NULL,
    pause_reason varchar,
    failures integer DEFAULT 0 NOT NULL,
    anchor_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    last_due_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    next_due_at timestamptz,
    next_at timestamptz,
    last_started_at timestamptz,
    version integer DEFAULT 1 NOT NULL,
    last_seq integer DEFAULT 0 NOT NULL,
    declared_by varchar,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    deleted_at timestamptz,
    CONSTRAINT schedules_kind_check CHECK (kind IN ('task', 'workflow', 'project')),
    CONSTRAINT schedules_overlap_check CHECK (overlap IN ('skip', 'queue-one', 'allow', 'cancel-previous')),
    CONSTRAINT schedules_catch_up_check CHECK (catch_up IN ('none', 'latest', 'all')),
    CONSTRAINT schedules_state_check CHECK (state IN ('active', 'paused')),
    CONSTRAINT schedules_rule_check CHECK ((cron IS NULL) <> (every_seconds IS NULL) AND every_seconds >= 10),
    CONSTRAINT schedules_pause_check CHECK ((state = 'paused') = (pause_reason IS NOT NULL)),
    CONSTRAINT schedules_next_check CHECK (next_at IS NULL OR (state = 'active' AND deleted_at IS NULL)),
    CONSTRAINT schedules_counters_check CHECK (failures >= 0 AND last_seq >= 0 AND version >= 1)
)
"""

RUNS = """
CREATE TABLE schedule_runs (
    schedule_id uuid NOT NULL,
    due_at timestamptz NOT NULL,
    outcome varchar NOT NULL,
    reason varchar,
    cause varchar NOT NULL,
    task_id uuid,
    workflow_id uuid,
    project_id uuid,
    run_id uuid,
    count integer DEFAULT 1 NOT NULL,
    until timestamptz,
    start jsonb,
    decided_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamptz,
    ended_as varchar,
    CONSTRAINT schedule_runs_pkey PRIMARY KEY (schedule_id, due_at),
    CONSTRAINT schedule_runs_outcome_check CHECK (
        outcome IN ('waiting', 'started', 'skipped', 'missed', 'refused')),
    CONSTRAINT schedule_runs_cause_check CHECK (cause IN ('time', 'trigger', 'backfill')),
    CONSTRAINT schedule_runs_count_check CHECK (count >= 1 AND (count = 1 OR until IS NOT NULL)),
    CONSTRAINT schedule_runs_started_check CHECK (
        (outcome = 'started') = (num_nonnulls(task_id, workflow_id, run_id) = 1)
        AND (outcome = 'waiting') = (start IS NOT NULL) AND (ended_at IS NULL) = (ended_as IS NULL))
)
"""

EVENTS = """
CREATE TABLE schedule_events (
    schedule_id uuid NOT NULL,
    seq integer NOT NULL,
    type varchar NOT NULL,
    at timestamptz DEFAULT clock_timestamp() NOT NULL,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    said boolean DEFAULT false NOT NULL,
    CONSTRAINT schedule_events_pkey PRIMARY KEY (schedule_id, seq)
)
"""

INDEXES = (
    "CREATE UNIQUE INDEX schedules_name ON schedules (user_id, name) WHERE deleted_at IS NULL",
    "CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL",
    "CREATE INDEX schedules_user ON schedules (user_id, schedule_id)",
    """
    CREATE INDEX schedule_runs_open ON schedule_runs (schedule_id, due_at)
    WHERE outcome = 'waiting' OR (outcome = 'started' AND ended_at IS NULL)
    """,
    "CREATE INDEX schedule_events_unsaid ON schedule_events (schedule_id, seq) WHERE NOT said",
)

STARTED = tuple(f"ALTER TABLE {table} ADD COLUMN schedule_id uuid" for table in ("tasks", "workflows", "project_runs"))


def upgrade() -> None:
    for statement in (SCHEDULES, RUNS, EVENTS, *INDEXES, *STARTED):
        op.execute(statement)
