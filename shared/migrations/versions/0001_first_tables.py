"""The first tables."""

from alembic import op

revision = "0001"
down_revision = None

TABLES = """
CREATE TABLE tasks (
    task_id UUID NOT NULL,
    actor VARCHAR NOT NULL,
    task_type VARCHAR,
    provider VARCHAR NOT NULL,
    queue TEXT GENERATED ALWAYS AS (actor || '.' || provider) STORED NOT NULL,
    lane VARCHAR DEFAULT 'fresh' NOT NULL,
    status VARCHAR NOT NULL,
    priority SMALLINT DEFAULT 2 NOT NULL,
    payload JSONB DEFAULT '{}'::jsonb NOT NULL,
    result JSONB,
    error JSONB,
    progress JSONB,
    checkpoint JSONB,
    attempt INTEGER DEFAULT 0 NOT NULL,
    retry_count INTEGER DEFAULT 0 NOT NULL,
    max_retries INTEGER DEFAULT 3 NOT NULL,
    interrupt_count INTEGER DEFAULT 0 NOT NULL,
    stall_count INTEGER DEFAULT 0 NOT NULL,
    rate_limited_count INTEGER DEFAULT 0 NOT NULL,
    available_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    expires_at TIMESTAMPTZ,
    max_age_seconds FLOAT,
    timeout_seconds FLOAT NOT NULL,
    created_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    updated_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    started_at TIMESTAMPTZ,
    completed_at TIMESTAMPTZ,
    worker_id VARCHAR,
    claim_token UUID,
    heartbeat_at TIMESTAMPTZ,
    lease_expires_at TIMESTAMPTZ,
    cancel_requested BOOLEAN DEFAULT false NOT NULL,
    doorbell_token UUID,
    doorbell_at TIMESTAMPTZ,
    doorbell_count INTEGER DEFAULT 0 NOT NULL,
    report_count INTEGER DEFAULT 0 NOT NULL,
    last_seq INTEGER DEFAULT 1 NOT NULL,
    unmet INTEGER DEFAULT 0 NOT NULL,
    user_id VARCHAR NOT NULL,
    tags TEXT[] DEFAULT '{}' NOT NULL,
    project_id VARCHAR,
    workflow_id VARCHAR,
    workflow_run_id VARCHAR,
    interaction_id VARCHAR,
    parent_task_id UUID,
    depends_on UUID[] DEFAULT '{}' NOT NULL,
    dedupe_key VARCHAR,
    provider_job_id VARCHAR,
    exit_code INTEGER,
    CONSTRAINT tasks_pkey PRIMARY KEY (task_id),
    CONSTRAINT tasks_status_check
        CHECK (status IN ('blocked', 'queued', 'running', 'retrying', 'completed', 'dead', 'cancelled')),
    CONSTRAINT tasks_lane_check CHECK (lane IN ('fresh', 'retry')),
    CONSTRAINT tasks_priority_check CHECK (priority BETWEEN 0 AND 9),
    CONSTRAINT tasks_counters_check CHECK (attempt >= 0 AND retry_count >= 0 AND max_retries >= 0
        AND interrupt_count >= 0 AND stall_count >= 0 AND rate_limited_count >= 0
        AND doorbell_count >= 0 AND report_count >= 0 AND unmet >= 0 AND last_seq >= 1),
    CONSTRAINT tasks_timeout_check CHECK (timeout_seconds > 0),
    CONSTRAINT tasks_lease_check CHECK ((status = 'running') = (lease_expires_at IS NOT NULL)
        AND (status <> 'running' OR (claim_token IS NOT NULL AND worker_id IS NOT NULL AND attempt > 0))),
    CONSTRAINT tasks_terminal_check
        CHECK ((status IN ('completed', 'dead', 'cancelled')) = (completed_at IS NOT NULL)),
    CONSTRAINT tasks_result_check CHECK (status = 'completed' OR result IS NULL),
    CONSTRAINT tasks_dead_check CHECK (status <> 'dead' OR error IS NOT NULL),
    CONSTRAINT tasks_unmet_check
        CHECK (CASE status WHEN 'blocked' THEN unmet > 0
        WHEN 'dead' THEN true WHEN 'cancelled' THEN true ELSE unmet = 0 END),
    CONSTRAINT tasks_doorbell_check CHECK ((doorbell_token IS NULL) = (doorbell_at IS NULL)
        AND (doorbell_token IS NULL OR status IN ('queued', 'retrying')))
);

CREATE INDEX tasks_blocked ON tasks (task_id) WHERE status = 'blocked';
CREATE INDEX tasks_due ON tasks (provider, lane, priority, available_at, task_id)
    WHERE status IN ('queued', 'retrying') AND doorbell_token IS NULL;
CREATE INDEX tasks_expiring ON tasks (expires_at)
    WHERE status IN ('blocked', 'queued', 'retrying') AND expires_at IS NOT NULL;
CREATE INDEX tasks_rung ON tasks (provider)
    WHERE status IN ('queued', 'retrying') AND doorbell_token IS NOT NULL;
CREATE INDEX tasks_running ON tasks (provider) WHERE status = 'running';

CREATE TABLE task_events (
    task_id UUID NOT NULL,
    seq INTEGER NOT NULL,
    type VARCHAR NOT NULL,
    at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    attempt INTEGER NOT NULL,
    data JSONB DEFAULT '{}'::jsonb NOT NULL,
    xid XID8 DEFAULT pg_current_xact_id() NOT NULL,
    CONSTRAINT task_events_pkey PRIMARY KEY (task_id, seq),
    CONSTRAINT task_events_seq_check CHECK (seq >= 1)
);

CREATE TABLE task_dependencies (
    parent_id UUID NOT NULL,
    child_id UUID NOT NULL,
    CONSTRAINT task_dependencies_pkey PRIMARY KEY (parent_id, child_id),
    CONSTRAINT task_dependencies_no_loop_check CHECK (parent_id <> child_id)
);

CREATE INDEX task_dependencies_child ON task_dependencies (child_id);

CREATE TABLE providers (
    name VARCHAR NOT NULL,
    actor VARCHAR NOT NULL,
    configured_limit INTEGER,
    limit_override INTEGER,
    lane_credit INTEGER DEFAULT 0 NOT NULL,
    dispatch_version INTEGER DEFAULT 0 NOT NULL,
    CONSTRAINT providers_pkey PRIMARY KEY (name),
    CONSTRAINT providers_limit_check CHECK (configured_limit >= 0 AND limit_override >= 0),
    CONSTRAINT providers_dispatch_version_check CHECK (dispatch_version >= 0)
);

CREATE TABLE workers (
    worker_id VARCHAR NOT NULL,
    hostname VARCHAR NOT NULL,
    pid INTEGER NOT NULL,
    queues TEXT[] NOT NULL,
    capacity INTEGER NOT NULL,
    state VARCHAR DEFAULT 'active' NOT NULL,
    started_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    heartbeat_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    stop_reason VARCHAR,
    CONSTRAINT workers_pkey PRIMARY KEY (worker_id),
    CONSTRAINT workers_state_check CHECK (state IN ('active', 'stopping', 'stopped', 'lost')),
    CONSTRAINT workers_capacity_check CHECK (capacity > 0)
);

CREATE INDEX workers_live ON workers (worker_id) WHERE state IN ('active', 'stopping');

CREATE TABLE service_reports (
    service VARCHAR NOT NULL,
    instance_id VARCHAR NOT NULL,
    healthy BOOLEAN NOT NULL,
    details JSONB DEFAULT '{}'::jsonb NOT NULL,
    reported_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT service_reports_pkey PRIMARY KEY (service, instance_id),
    CONSTRAINT service_reports_service_check CHECK (service IN ('dispatcher', 'janitor'))
);

CREATE TABLE task_queue_metrics (
    day DATE NOT NULL,
    actor VARCHAR NOT NULL,
    created INTEGER NOT NULL,
    completed INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    average_latency_seconds FLOAT,
    error_rate FLOAT,
    heartbeat_delay_seconds FLOAT,
    updated_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT task_queue_metrics_pkey PRIMARY KEY (day, actor)
);

CREATE TABLE api_keys (
    key_id VARCHAR NOT NULL,
    secret_hash BYTEA NOT NULL,
    role VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    created_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    expires_at TIMESTAMPTZ,
    revoked_at TIMESTAMPTZ,
    CONSTRAINT api_keys_pkey PRIMARY KEY (key_id),
    CONSTRAINT api_keys_role_check CHECK (role IN ('user', 'viewer', 'admin'))
);
"""


def upgrade() -> None:
    for statement in filter(str.strip, TABLES.split(";")):
        op.execute(statement)
