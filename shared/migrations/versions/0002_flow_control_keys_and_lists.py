"""Flow control, keys of every kind, bulk jobs, the audit log, and indexes for lists over a long history."""

from alembic import op

revision = "0002"
down_revision = "0001"

CHANGES = r"""
CREATE EXTENSION IF NOT EXISTS pg_trgm;

ALTER TABLE tasks ADD COLUMN error_fingerprint TEXT GENERATED ALWAYS AS (
    (error ->> 'type') || ': ' || regexp_replace(regexp_replace(regexp_replace(
        left(coalesce(error ->> 'message', ''), 300),
        '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', '#', 'g'),
        '\m\w*\d\w*\M', '#', 'g'),
        '#([-.,:/+]#)+', '#', 'g')
) STORED;

ALTER TABLE providers
    ADD COLUMN configured_rate JSONB,
    ADD COLUMN rate_override JSONB,
    ADD COLUMN paused BOOLEAN DEFAULT false NOT NULL,
    ADD COLUMN paused_until TIMESTAMPTZ,
    ADD COLUMN pause_reason VARCHAR,
    ADD COLUMN trial_token UUID,
    ADD COLUMN breaker_mode VARCHAR DEFAULT 'auto' NOT NULL,
    ADD COLUMN breaker_state VARCHAR DEFAULT 'closed' NOT NULL,
    ADD COLUMN breaker_until TIMESTAMPTZ,
    ADD COLUMN breaker_reason VARCHAR,
    ADD COLUMN breaker_changed_at TIMESTAMPTZ,
    ADD CONSTRAINT providers_breaker_mode_check CHECK (breaker_mode IN ('auto', 'open', 'closed')),
    ADD CONSTRAINT providers_breaker_state_check CHECK (breaker_state IN ('closed', 'open', 'half-open')),
    ADD CONSTRAINT providers_breaker_until_check CHECK ((breaker_state = 'closed') = (breaker_until IS NULL));

ALTER TABLE api_keys
    ADD COLUMN name VARCHAR,
    ADD COLUMN created_by VARCHAR;

CREATE TABLE submission_keys (
    user_id VARCHAR NOT NULL,
    kind VARCHAR NOT NULL,
    key VARCHAR NOT NULL,
    task_id UUID NOT NULL,
    body_hash BYTEA,
    expires_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT submission_keys_pkey PRIMARY KEY (user_id, kind, key),
    CONSTRAINT submission_keys_kind_check CHECK (kind IN ('idempotency', 'dedupe'))
);

CREATE INDEX submission_keys_expiry ON submission_keys (expires_at);
CREATE TABLE task_tallies (
    tally_id BIGINT GENERATED ALWAYS AS IDENTITY,
    user_id VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    tasks INTEGER NOT NULL,
    CONSTRAINT task_tallies_pkey PRIMARY KEY (tally_id)
);

CREATE TABLE task_counts (
    user_id VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    tasks INTEGER NOT NULL,
    CONSTRAINT task_counts_pkey PRIMARY KEY (user_id, provider, status)
);

INSERT INTO task_tallies (user_id, provider, status, tasks)
    SELECT user_id, provider, status, count(*) FROM tasks
    WHERE status IN ('completed', 'dead', 'cancelled') GROUP BY user_id, provider, status;

CREATE TABLE bulk_jobs (
    bulk_id UUID NOT NULL,
    action VARCHAR NOT NULL,
    filter JSONB DEFAULT '{}'::jsonb NOT NULL,
    user_id VARCHAR NOT NULL,
    scope_user_id VARCHAR,
    state VARCHAR DEFAULT 'running' NOT NULL,
    matched INTEGER NOT NULL,
    done INTEGER DEFAULT 0 NOT NULL,
    changed INTEGER DEFAULT 0 NOT NULL,
    last_task_id UUID,
    canary INTEGER,
    canary_ids UUID[] DEFAULT '{}' NOT NULL,
    reason VARCHAR,
    created_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    updated_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT bulk_jobs_pkey PRIMARY KEY (bulk_id),
    CONSTRAINT bulk_jobs_action_check CHECK (action IN ('retry', 'cancel')),
    CONSTRAINT bulk_jobs_state_check CHECK (state IN ('running', 'waiting-for-canary', 'finished', 'stopped'))
);

CREATE INDEX bulk_jobs_unfinished ON bulk_jobs (bulk_id) WHERE state IN ('running', 'waiting-for-canary');
CREATE UNLOGGED TABLE provider_results (
    result_id BIGINT GENERATED ALWAYS AS IDENTITY,
    provider VARCHAR NOT NULL,
    at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    failed BOOLEAN NOT NULL,
    task_id UUID NOT NULL,
    CONSTRAINT provider_results_pkey PRIMARY KEY (result_id)
);

CREATE INDEX provider_results_window ON provider_results (provider, at);
CREATE TABLE provider_events (
    event_id BIGINT GENERATED ALWAYS AS IDENTITY,
    provider VARCHAR NOT NULL,
    type VARCHAR NOT NULL,
    at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    reason VARCHAR NOT NULL,
    data JSONB DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT provider_events_pkey PRIMARY KEY (event_id)
);

CREATE INDEX provider_events_history ON provider_events (provider, event_id);
CREATE TABLE rate_counters (
    key VARCHAR NOT NULL,
    value INTEGER NOT NULL,
    expires_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT rate_counters_pkey PRIMARY KEY (key)
);

CREATE INDEX rate_counters_expiry ON rate_counters (expires_at);
CREATE TABLE audit_log (
    audit_id BIGINT GENERATED ALWAYS AS IDENTITY,
    at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    key_id VARCHAR NOT NULL,
    user_id VARCHAR NOT NULL,
    action VARCHAR NOT NULL,
    target VARCHAR,
    details JSONB DEFAULT '{}'::jsonb NOT NULL,
    CONSTRAINT audit_log_pkey PRIMARY KEY (audit_id)
);

CREATE TABLE server_secrets (
    name VARCHAR NOT NULL,
    secret BYTEA NOT NULL,
    CONSTRAINT server_secrets_pkey PRIMARY KEY (name)
);

CREATE INDEX tasks_dead_errors ON tasks (error_fingerprint, task_id) INCLUDE (completed_at) WHERE status = 'dead';
CREATE INDEX tasks_dead ON tasks (task_id) WHERE status = 'dead';
CREATE INDEX tasks_cancelled ON tasks (task_id) WHERE status = 'cancelled';
CREATE INDEX tasks_finished ON tasks (task_id) WHERE status IN ('completed', 'dead', 'cancelled');
CREATE INDEX tasks_finished_actor ON tasks (status, actor, task_id) WHERE status IN ('completed', 'dead', 'cancelled');
CREATE INDEX tasks_finished_at ON tasks (completed_at) WHERE status IN ('completed', 'dead', 'cancelled');
CREATE INDEX tasks_finished_error ON tasks (status, (error ->> 'type'), task_id)
    WHERE status IN ('completed', 'dead', 'cancelled') AND error IS NOT NULL;
CREATE INDEX tasks_finished_interaction ON tasks (status, interaction_id, task_id)
    WHERE status IN ('completed', 'dead', 'cancelled') AND interaction_id IS NOT NULL;
CREATE INDEX tasks_finished_parent ON tasks (status, parent_task_id, task_id)
    WHERE status IN ('completed', 'dead', 'cancelled') AND parent_task_id IS NOT NULL;
CREATE INDEX tasks_finished_project ON tasks (status, project_id, task_id)
    WHERE status IN ('completed', 'dead', 'cancelled') AND project_id IS NOT NULL;
CREATE INDEX tasks_finished_provider ON tasks (status, provider, task_id)
    WHERE status IN ('completed', 'dead', 'cancelled');
CREATE INDEX tasks_finished_retry ON tasks (status, task_id)
    WHERE status IN ('completed', 'dead', 'cancelled') AND lane = 'retry';
CREATE INDEX tasks_finished_tags ON tasks USING gin (tags)
    WHERE status IN ('completed', 'dead', 'cancelled') AND tags <> '{}';
CREATE INDEX tasks_finished_text ON tasks
    USING gin ((
        left(coalesce(payload ->> 'prompt', payload ->> 'content', ''), 300)
        || ' ' || left(coalesce(error ->> 'message', ''), 300)) gin_trgm_ops)
    WITH (gin_pending_list_limit = 16384)
    WHERE status IN ('completed', 'dead', 'cancelled') AND (
        left(coalesce(payload ->> 'prompt', payload ->> 'content', ''), 300)
        || ' ' || left(coalesce(error ->> 'message', ''), 300)) <> ' ';
CREATE STATISTICS tasks_searched_text ON (
    left(coalesce(payload ->> 'prompt', payload ->> 'content', ''), 300)
    || ' ' || left(coalesce(error ->> 'message', ''), 300)) FROM tasks;
CREATE INDEX tasks_finished_user ON tasks (status, user_id, task_id)
    WHERE status IN ('completed', 'dead', 'cancelled');
CREATE INDEX tasks_finished_workflow ON tasks (status, workflow_id, task_id)
    WHERE status IN ('completed', 'dead', 'cancelled') AND workflow_id IS NOT NULL;
CREATE INDEX tasks_finished_workflow_run ON tasks (status, workflow_run_id, task_id)
    WHERE status IN ('completed', 'dead', 'cancelled') AND workflow_run_id IS NOT NULL;
CREATE INDEX tasks_live ON tasks (task_id) WHERE status IN ('blocked', 'queued', 'running', 'retrying');
CREATE INDEX task_events_in_order_of_commit ON task_events (xid, task_id, seq);
"""


def upgrade() -> None:
    for statement in CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
