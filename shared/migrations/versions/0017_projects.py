"""Projects: run queues with their items, runs and histories; and how many items a bulk job has put back."""

from alembic import op

revision = "0017"
down_revision = "0016"

PROJECTS = """
CREATE TABLE projects (
    project_id uuid NOT NULL,
    user_id varchar NOT NULL,
    name varchar NOT NULL,
    defaults jsonb DEFAULT '{}'::jsonb NOT NULL,
    on_failure varchar DEFAULT 'stop' NOT NULL,
    state varchar DEFAULT 'idle' NOT NULL,
    mode varchar,
    current_run_id uuid,
    forced_at timestamptz,
    started_at timestamptz,
    stopped_at timestamptz,
    stop_reason varchar,
    last_error jsonb,
    last_seq integer DEFAULT 0 NOT NULL,
    archived_at timestamptz,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT projects_pkey PRIMARY KEY (project_id),
    CONSTRAINT projects_state_check CHECK (state IN ('idle', 'running', 'stopping')),
    CONSTRAINT projects_mode_check CHECK (mode IN ('single', 'loop')),
    CONSTRAINT projects_on_failure_check CHECK (on_failure IN ('stop', 'continue')),
    CONSTRAINT projects_stop_reason_check CHECK (stop_reason IN ('finished', 'stopped', 'forced', 'failed')),
    CONSTRAINT projects_queue_check CHECK (
        (state = 'idle') = (current_run_id IS NULL) AND (forced_at IS NULL OR state = 'stopping')
        AND (state = 'idle' OR (mode IS NOT NULL AND started_at IS NOT NULL AND archived_at IS NULL))
    ),
    CONSTRAINT projects_last_seq_check CHECK (last_seq >= 0)
)
"""

PROJECT_ITEMS = """
CREATE TABLE project_items (
    item_id uuid NOT NULL,
    project_id uuid NOT NULL,
    position numeric NOT NULL,
    state varchar DEFAULT 'waiting' NOT NULL,
    title varchar,
    given jsonb DEFAULT '{}'::jsonb NOT NULL,
    task jsonb DEFAULT '{}'::jsonb NOT NULL,
    last_run_id uuid,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT project_items_pkey PRIMARY KEY (item_id),
    CONSTRAINT project_items_project_id_position_key UNIQUE (project_id, position) DEFERRABLE INITIALLY IMMEDIATE,
    CONSTRAINT project_items_state_check CHECK (state IN ('waiting', 'done', 'failed', 'skipped'))
)
"""

PROJECT_RUNS = """
CREATE TABLE project_runs (
    run_id uuid NOT NULL,
    project_id uuid NOT NULL,
    item_id uuid NOT NULL,
    task_id uuid NOT NULL,
    life integer NOT NULL,
    attempts_before integer DEFAULT 0 NOT NULL,
    mode varchar NOT NULL,
    named boolean DEFAULT false NOT NULL,
    state varchar DEFAULT 'running' NOT NULL,
    started_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    ended_at timestamptz,
    error jsonb,
    receipt jsonb,
    revived_from uuid,
    CONSTRAINT project_runs_pkey PRIMARY KEY (run_id),
    CONSTRAINT project_runs_task_id_life_key UNIQUE (task_id, life),
    CONSTRAINT project_runs_state_check CHECK (
        state IN ('running', 'completed', 'dead', 'cancelled', 'withdrawn', 'lost')
    ),
    CONSTRAINT project_runs_mode_check CHECK (mode IN ('single', 'loop')),
    CONSTRAINT project_runs_ended_check CHECK ((state = 'running') = (ended_at IS NULL)),
    CONSTRAINT project_runs_life_check CHECK (life >= 1 AND attempts_before >= 0)
)
"""

PROJECT_EVENTS = """
CREATE TABLE project_events (
    project_id uuid NOT NULL,
    seq integer NOT NULL,
    type varchar NOT NULL,
    at timestamptz DEFAULT clock_timestamp() NOT NULL,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    said boolean DEFAULT false NOT NULL,
    CONSTRAINT project_events_pkey PRIMARY KEY (project_id, seq),
    CONSTRAINT project_events_seq_check CHECK (seq >= 1)
)
"""

INDEXES = (
    "CREATE INDEX projects_user ON projects (user_id, project_id)",
    "CREATE INDEX projects_busy ON projects (project_id) WHERE state <> 'idle'",
    "CREATE INDEX project_items_state ON project_items (project_id, state, position)",
    "CREATE UNIQUE INDEX project_runs_open ON project_runs (project_id) WHERE ended_at IS NULL",
    "CREATE INDEX project_runs_project ON project_runs (project_id, run_id)",
    "CREATE INDEX project_events_unsaid ON project_events (project_id, seq) WHERE NOT said",
)

BULK_JOBS = "ALTER TABLE bulk_jobs ADD COLUMN requeued integer DEFAULT 0 NOT NULL"


def upgrade() -> None:
    for statement in (PROJECTS, PROJECT_ITEMS, PROJECT_RUNS, PROJECT_EVENTS, *INDEXES, BULK_JOBS):
        op.execute(statement)
