"""Orders at providers and the files that came of them; tasks know whether their job at the provider is still open."""

from alembic import op

revision = "0003"
down_revision = "0002"

CHANGES = """
ALTER TABLE tasks ADD COLUMN job_open BOOLEAN DEFAULT false NOT NULL;
CREATE INDEX tasks_job_open ON tasks (provider) WHERE job_open;

CREATE TABLE generations (
    generation_id UUID NOT NULL,
    task_id UUID NOT NULL,
    attempt INTEGER NOT NULL,
    user_id VARCHAR NOT NULL,
    provider VARCHAR NOT NULL,
    operation VARCHAR NOT NULL,
    status VARCHAR NOT NULL,
    request JSONB DEFAULT '{}'::jsonb NOT NULL,
    response JSONB,
    provider_job_id VARCHAR,
    callback_hash BYTEA NOT NULL,
    callback JSONB,
    callback_at TIMESTAMPTZ,
    workflow_run_id VARCHAR,
    interaction_id VARCHAR,
    prompt_id VARCHAR,
    source_data JSONB,
    created_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    updated_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    ended_at TIMESTAMPTZ,
    looked_at TIMESTAMPTZ,
    given_up BOOLEAN DEFAULT false NOT NULL,
    CONSTRAINT generations_pkey PRIMARY KEY (generation_id),
    CONSTRAINT generations_status_check
        CHECK (status IN ('intended', 'open', 'fetching', 'completed', 'failed', 'refused', 'unknown')),
    CONSTRAINT generations_job_check
        CHECK (status NOT IN ('open', 'fetching', 'completed') OR provider_job_id IS NOT NULL)
);

CREATE INDEX generations_task ON generations (task_id, generation_id);
CREATE INDEX generations_job ON generations (provider, provider_job_id) WHERE provider_job_id IS NOT NULL;
CREATE INDEX generations_workflow_run ON generations (workflow_run_id, generation_id) WHERE workflow_run_id IS NOT NULL;
CREATE INDEX generations_unended ON generations (provider)
    WHERE status IN ('intended', 'open', 'fetching', 'unknown') AND NOT given_up;
CREATE UNIQUE INDEX generations_callback ON generations (callback_hash);

CREATE TABLE contents (
    content_id UUID NOT NULL,
    generation_id UUID NOT NULL,
    index INTEGER NOT NULL,
    provider_url VARCHAR NOT NULL,
    media_type VARCHAR NOT NULL,
    extension VARCHAR NOT NULL,
    place VARCHAR NOT NULL,
    size_bytes BIGINT NOT NULL,
    sha256 VARCHAR NOT NULL,
    created_at TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT contents_pkey PRIMARY KEY (content_id),
    CONSTRAINT contents_numbers_check CHECK (index >= 0 AND size_bytes >= 0)
);

CREATE UNIQUE INDEX contents_generation ON contents (generation_id, index);
"""


def upgrade() -> None:
    for statement in CHANGES.split(";\n"):
        if statement.strip():
            op.execute(statement)
