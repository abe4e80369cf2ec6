"""Webhooks: endpoints, bodies stored once, deliveries and their tries."""

from alembic import op

revision = "0022"
down_revision = "0021"

TASKS = "ALTER TABLE tasks ADD COLUMN webhook_id uuid"

WEBHOOKS = """
CREATE TABLE webhooks (
    webhook_id uuid NOT NULL CONSTRAINT webhooks_pkey PRIMARY KEY,
    user_id varchar NOT NULL,
    url varchar NOT NULL,
    events text[] DEFAULT '{}' NOT NULL,
    filter jsonb DEFAULT '{}'::jsonb NOT NULL,
    scope varchar DEFAULT 'own' NOT NULL,
    description varchar,
    listens boolean GENERATED ALWAYS AS (events <> '{}'::text[] AND deleted_at IS NULL) STORED NOT NULL,
    secret bytea NOT NULL,
    previous_secret bytea,
    previous_until timestamptz,
    state varchar DEFAULT 'enabled' NOT NULL,
    reason varchar,
    failing_since timestamptz,
    changed_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    probe_at timestamptz,
    probing boolean DEFAULT false NOT NULL,
    unsettled boolean DEFAULT false NOT NULL,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    updated_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    deleted_at timestamptz,
    CONSTRAINT webhooks_state_check CHECK (state IN ('enabled', 'failing', 'disabled', 'gone')),
    CONSTRAINT webhooks_scope_check CHECK (scope IN ('own', 'all'))
)
"""

BODIES = """
CREATE TABLE webhook_bodies (
    body_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT webhook_bodies_pkey PRIMARY KEY,
    body text NOT NULL
)
"""

DELIVERIES = """
CREATE TABLE deliveries (
    delivery_id uuid NOT NULL CONSTRAINT deliveries_pkey PRIMARY KEY,
    webhook_id uuid NOT NULL,
    body_id bigint NOT NULL,
    type varchar NOT NULL,
    subject varchar NOT NULL,
    life integer DEFAULT 1 NOT NULL,
    seq bigint NOT NULL,
    named boolean DEFAULT false NOT NULL,
    state varchar DEFAULT 'waiting' NOT NULL,
    reason varchar,
    task_id uuid NOT NULL,
    attempts integer DEFAULT 0 NOT NULL,
    last_status integer,
    created_at timestamptz DEFAULT clock_timestamp() NOT NULL,
    delivered_at timestamptz,
    CONSTRAINT deliveries_state_check CHECK (state IN ('waiting', 'delivered', 'failed')),
    CONSTRAINT deliveries_delivered_check CHECK ((state = 'delivered') = (delivered_at IS NOT NULL))
)
"""

TRIES = """
CREATE TABLE delivery_tries (
    try_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT delivery_tries_pkey PRIMARY KEY,
    delivery_id uuid NOT NULL,
    webhook_id uuid NOT NULL,
    task_id uuid NOT NULL,
    attempt integer NOT NULL,
    at timestamptz DEFAULT clock_timestamp() NOT NULL,
    delivered boolean NOT NULL,
    status_code integer,
    elapsed_ms integer,
    error varchar,
    excerpt varchar
)
"""

INDEXES = (
    "CREATE UNIQUE INDEX webhooks_url ON webhooks (user_id, url) WHERE deleted_at IS NULL",
    "CREATE INDEX webhooks_listening ON webhooks (webhook_id) WHERE listens",
    "CREATE INDEX webhooks_unsettled ON webhooks (webhook_id) WHERE unsettled",
    "CREATE INDEX webhooks_probed ON webhooks (probe_at) WHERE probe_at IS NOT NULL",
    "CREATE UNIQUE INDEX deliveries_once ON deliveries (webhook_id, subject, life, seq)",
    "CREATE INDEX deliveries_task ON deliveries (task_id)",
    "CREATE INDEX deliveries_webhook ON deliveries (webhook_id, delivery_id)",
    "CREATE INDEX deliveries_waiting ON deliveries (webhook_id, delivery_id) WHERE state = 'waiting'",
    "CREATE UNIQUE INDEX delivery_tries_once ON delivery_tries (task_id, attempt)",
    "CREATE INDEX delivery_tries_delivery ON delivery_tries (delivery_id, try_id)",
    "CREATE INDEX delivery_tries_webhook ON delivery_tries (webhook_id, try_id)",
)


def upgrade() -> None:
    for statement in (TASKS, WEBHOOKS, BODIES, DELIVERIES, TRIES, *INDEXES):
        op.execute(statement)
