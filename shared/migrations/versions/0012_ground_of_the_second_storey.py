"""What the second storey stands on: levels, concerns and lives, what is held and why, keys, rates in the claim."""

from alembic import op

from windlass.shared.models.demand import READ_DEMAND

revision = "0012"
down_revision = "0011"

TASKS = """
ALTER TABLE tasks
    ADD COLUMN level smallint DEFAULT 0 NOT NULL,
    ADD COLUMN concerns integer DEFAULT 0 NOT NULL,
    ADD COLUMN life integer DEFAULT 1 NOT NULL,
    ADD COLUMN held text[] DEFAULT '{}' NOT NULL,
    ADD COLUMN held_at timestamptz,
    ADD COLUMN due_at timestamptz,
    ADD COLUMN concurrency_key varchar,
    ADD COLUMN usage jsonb,
    ADD CONSTRAINT tasks_lives_check CHECK (level >= 0 AND concerns >= 0 AND life >= 1),
    ADD CONSTRAINT tasks_held_check CHECK (
        (held = '{}') = (due_at IS NULL) AND (held = '{}') = (held_at IS NULL)
        AND (held = '{}' OR (status IN ('blocked', 'queued', 'retrying') AND available_at = 'infinity'
                             AND doorbell_token IS NULL AND NOT job_open)))
"""

SWEPT = "ALTER TABLE tasks SET (autovacuum_vacuum_cost_limit = 2000)"
"""By default a vacuum pauses so often that on a busy day dead rows are made faster than it removes them."""

FUNCTION_SETS = """
CREATE TABLE function_sets (
    name varchar NOT NULL CONSTRAINT function_sets_pkey PRIMARY KEY,
    level integer NOT NULL,
    migrated_at timestamptz DEFAULT clock_timestamp() NOT NULL
)
"""

UNTOLD = """
CREATE TABLE untold (
    untold_id bigint GENERATED ALWAYS AS IDENTITY CONSTRAINT untold_pkey PRIMARY KEY,
    subject varchar NOT NULL,
    task_id uuid NOT NULL,
    seq integer NOT NULL,
    move jsonb DEFAULT '{}'::jsonb NOT NULL,
    error varchar NOT NULL,
    tries integer DEFAULT 0 NOT NULL,
    since timestamptz DEFAULT clock_timestamp() NOT NULL,
    tell_at timestamptz DEFAULT clock_timestamp() NOT NULL
)
"""

QUEUES = """
CREATE TABLE queues (
    queue varchar NOT NULL CONSTRAINT queues_pkey PRIMARY KEY,
    provider varchar NOT NULL,
    actor varchar NOT NULL
)
"""

KNOWN_QUEUES = """
INSERT INTO queues (queue, provider, actor)
SELECT actor || '.' || name, name, actor FROM providers
UNION SELECT queue, provider, actor FROM tasks WHERE status IN ('blocked', 'queued', 'running', 'retrying')
"""
"""Those of today, and those of providers that had another actor when what still waits there was submitted."""

ACTORS = """
CREATE TABLE actors (
    name varchar NOT NULL CONSTRAINT actors_pkey PRIMARY KEY,
    concurrency_limit integer,
    CONSTRAINT actors_concurrency_limit_check CHECK (concurrency_limit > 0)
)
"""

PROVIDERS = """
ALTER TABLE providers
    ADD COLUMN rate_moments timestamptz[] DEFAULT '{}' NOT NULL,
    ADD COLUMN rate_counts integer[] DEFAULT '{}' NOT NULL,
    ADD CONSTRAINT providers_rate_window_check CHECK (cardinality(rate_moments) = cardinality(rate_counts))
"""

DUE = """
DROP INDEX tasks_due;

CREATE INDEX tasks_due ON tasks (queue, lane, priority, available_at, task_id) INCLUDE (user_id)
WHERE status IN ('queued', 'retrying') AND doorbell_token IS NULL
"""

KEYS = """
CREATE INDEX tasks_key_taken ON tasks (provider, actor, concurrency_key)
WHERE concurrency_key IS NOT NULL AND (status = 'running' OR job_open);

CREATE INDEX tasks_key_waiting ON tasks (provider, actor, concurrency_key, priority, available_at, task_id)
WHERE concurrency_key IS NOT NULL AND status IN ('queued', 'retrying') AND held = '{}';

CREATE INDEX tasks_parked ON tasks (provider, actor, concurrency_key, priority, due_at, task_id)
WHERE concurrency_key IS NOT NULL AND held = '{key}'
"""

BULK_JOBS = "ALTER TABLE bulk_jobs ADD COLUMN duplicates integer DEFAULT 0 NOT NULL"

TALLIES = """
ALTER TABLE task_tallies ADD COLUMN actor varchar DEFAULT '' NOT NULL;

ALTER TABLE task_counts ADD COLUMN actor varchar DEFAULT '' NOT NULL;

UPDATE task_counts c SET actor = coalesce(
    (SELECT p.actor FROM providers p WHERE p.name = c.provider),
    (SELECT t.actor FROM tasks t WHERE t.provider = c.provider LIMIT 1), '');

ALTER TABLE task_counts DROP CONSTRAINT task_counts_pkey,
    ADD CONSTRAINT task_counts_pkey PRIMARY KEY (user_id, provider, status, actor)
"""
"""Until now a provider had one actor. Tallies of processes that know no other, also of those that still run while this
is done, name none: it is the provider's first."""


def upgrade() -> None:
    op.execute(TASKS)
    op.execute(SWEPT)
    op.execute(FUNCTION_SETS)
    op.execute(UNTOLD)
    op.execute(QUEUES)
    op.execute(KNOWN_QUEUES)
    op.execute("CREATE INDEX queues_provider ON queues (provider)")
    op.execute(ACTORS)
    op.execute(PROVIDERS)
    op.execute(BULK_JOBS)
    for statement in ";".join((DUE, KEYS, TALLIES)).split(";"):
        op.execute(statement)
    # Replaced, not made anew: the view upon it stays, and who was allowed to read it still is.
    op.execute(READ_DEMAND.replace("CREATE FUNCTION", "CREATE OR REPLACE FUNCTION", 1))
