"""Memory: what agents did and the vectors that it is found by; and daily figures by who, for whom and at what cost."""

from alembic import op

revision = "0021"
down_revision = "0020"

EVENTS = """
CREATE TABLE agent_events (
    event_id uuid NOT NULL CONSTRAINT agent_events_pkey PRIMARY KEY,
    task_id uuid NOT NULL,
    life integer NOT NULL,
    attempt integer NOT NULL,
    user_id varchar NOT NULL,
    actor varchar NOT NULL,
    provider varchar NOT NULL,
    subagent_type varchar,
    project_id varchar,
    workflow_id varchar,
    status varchar NOT NULL,
    title varchar NOT NULL,
    text varchar NOT NULL,
    data jsonb DEFAULT '{}'::jsonb NOT NULL,
    at timestamptz DEFAULT clock_timestamp() NOT NULL,
    lexemes tsvector,
    gathered_at timestamptz,
    CONSTRAINT agent_events_status_check CHECK (status IN ('completed', 'dead', 'cancelled'))
)
"""

MODELS = """
CREATE TABLE embedding_models (
    model_id uuid NOT NULL CONSTRAINT embedding_models_pkey PRIMARY KEY,
    name varchar NOT NULL,
    provider varchar NOT NULL,
    dimensions integer NOT NULL,
    state varchar DEFAULT 'building' NOT NULL,
    filled_to uuid,
    is_filled boolean DEFAULT false NOT NULL,
    activate_when_filled boolean DEFAULT false NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    activated_at timestamptz,
    CONSTRAINT embedding_models_state_check CHECK (state IN ('building', 'active', 'retired')),
    CONSTRAINT embedding_models_dimensions_check CHECK (dimensions BETWEEN 1 AND 4096)
)
"""

HASH_256 = """
INSERT INTO embedding_models (model_id, name, provider, dimensions, state, is_filled, activated_at)
VALUES ('00000000-0000-7000-8000-000000000256', 'hash-256', 'hash', 256, 'active', true, clock_timestamp())
"""

EMBEDDINGS = """
CREATE TABLE embeddings (
    event_id uuid NOT NULL,
    model_id uuid NOT NULL,
    vector real[],
    CONSTRAINT embeddings_pkey PRIMARY KEY (event_id, model_id)
)
"""

JOBS = """
CREATE TABLE embedding_jobs (
    job_id uuid NOT NULL CONSTRAINT embedding_jobs_pkey PRIMARY KEY,
    model_id uuid NOT NULL,
    task_id uuid NOT NULL,
    event_ids uuid[] NOT NULL,
    state varchar DEFAULT 'waiting' NOT NULL,
    error jsonb,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT embedding_jobs_state_check CHECK (state IN ('waiting', 'done', 'failed'))
)
"""

QUESTIONS = """
CREATE TABLE question_vectors (
    model_id uuid NOT NULL,
    question_hash bytea NOT NULL,
    vector real[] NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT question_vectors_pkey PRIMARY KEY (model_id, question_hash)
)
"""

FIGURES = """
CREATE TABLE task_queue_metrics (
    day date NOT NULL,
    actor varchar NOT NULL,
    subagent_type varchar NOT NULL,
    provider varchar NOT NULL,
    user_id varchar NOT NULL,
    project_id varchar NOT NULL,
    created integer NOT NULL,
    completed integer NOT NULL,
    failed integer NOT NULL,
    cancelled integer NOT NULL,
    latency_ms bigint NOT NULL,
    waits jsonb DEFAULT '{}'::jsonb NOT NULL,
    runs jsonb DEFAULT '{}'::jsonb NOT NULL,
    running integer NOT NULL,
    heartbeat_delay_ms bigint NOT NULL,
    prompt_tokens bigint,
    completion_tokens bigint,
    cost_usd numeric,
    failed_cost_usd numeric,
    updated_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT task_queue_metrics_pkey PRIMARY KEY (day, actor, subagent_type, provider, user_id, project_id)
)
"""

INDEXES = (
    "CREATE UNIQUE INDEX agent_events_task_id_life_key ON agent_events (task_id, life)",
    "CREATE INDEX agent_events_user ON agent_events (user_id, event_id)",
    "CREATE INDEX agent_events_project ON agent_events (project_id, event_id) WHERE project_id IS NOT NULL",
    "CREATE INDEX agent_events_ungathered ON agent_events (event_id) WHERE gathered_at IS NULL",
    "CREATE INDEX agent_events_lexemes ON agent_events USING gin (lexemes)",
    "CREATE UNIQUE INDEX embedding_models_provider_name_key ON embedding_models (provider, name)",
    "CREATE UNIQUE INDEX embedding_models_active ON embedding_models (state) WHERE state = 'active'",
    "CREATE INDEX embeddings_missing ON embeddings (model_id) WHERE vector IS NULL",
    "CREATE UNIQUE INDEX embedding_jobs_task_id_key ON embedding_jobs (task_id)",
    "CREATE INDEX embedding_jobs_model ON embedding_jobs (model_id)",
    "CREATE INDEX embedding_jobs_open ON embedding_jobs (state, job_id) WHERE state <> 'done'",
    "CREATE INDEX question_vectors_created ON question_vectors (created_at)",
    "CREATE INDEX task_queue_metrics_user ON task_queue_metrics (user_id, day)",
)


def upgrade() -> None:
    # The figures that there were are of another shape, and the janitor counts anew.
    op.execute("DROP TABLE task_queue_metrics")
    for statement in (EVENTS, MODELS, HASH_256, EMBEDDINGS, JOBS, QUESTIONS, FIGURES, *INDEXES):
        op.execute(statement)
