"""What the second storey stands on: levels, concerns and lives, what is held and why, keys, rates in the claim."""

from alembic import op

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


READ_DEMAND = """
CREATE OR REPLACE FUNCTION read_demand() RETURNS TABLE (queue text, wanted bigint) LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = public, pg_temp SET jit = off SET enable_sort = off SET enable_seqscan = off AS $$
BEGIN
RETURN QUERY
WITH own AS MATERIALIZED (
    SELECT q.queue::text AS name, q.provider, q.actor, running.tasks AS running, running.trials, resuming.held,
           resuming.due AS resuming
    FROM queues q JOIN providers p ON p.name = q.provider
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks, count(*) FILTER (WHERE t.claim_token = p.trial_token) AS trials
        FROM tasks t WHERE t.provider = p.name AND t.queue = q.queue AND t.status = 'running'
    ) AS running
    CROSS JOIN LATERAL (
        SELECT count(*) AS held, count(*) FILTER (WHERE t.status IN ('queued', 'retrying') AND t.available_at <= now()
    AND (t.expires_at IS NULL OR t.expires_at > now())) AS due
        FROM tasks t WHERE t.provider = p.name AND t.queue = q.queue AND t.job_open AND t.status <> 'running'
    ) AS resuming
)
SELECT q.name AS queue,
       q.running + CASE
           WHEN p.paused OR p.paused_until > now() OR p.breaker_until > now() THEN 0
           WHEN p.paused_until IS NOT NULL OR p.breaker_state <> 'closed'
               THEN CASE WHEN whole.trials > 0 THEN 0 ELSE least(1, q.resuming + waiting.admitted) END
           ELSE q.resuming + waiting.admitted
       END AS wanted
FROM own q JOIN providers p ON p.name = q.provider
CROSS JOIN LATERAL (
    SELECT sum(o.running)::bigint AS running, sum(o.trials)::bigint AS trials, sum(o.held)::bigint AS held
    FROM own o WHERE o.provider = p.name
) AS whole
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks FROM tasks t
    WHERE t.provider = p.name AND t.queue = q.name AND t.doorbell_token IS NOT NULL AND NOT t.job_open
      AND t.concurrency_key IS NULL
    AND t.status IN ('queued', 'retrying') AND t.available_at <= now()
    AND (t.expires_at IS NULL OR t.expires_at > now())
) AS rung
CROSS JOIN LATERAL (
    -- Of each key no more than it has room for; what has been parked is held, and counts nowhere.
    SELECT coalesce(sum(of_key.tasks), 0)::bigint AS tasks, coalesce(sum(least(of_key.tasks, (
               SELECT greatest(0, a.concurrency_limit - (
                   SELECT count(*) FROM tasks t
                   WHERE t.provider = q.provider AND t.actor = q.actor AND t.concurrency_key = of_key.key
                     AND (t.status = 'running' OR t.job_open)))
               FROM actors a WHERE a.name = q.actor AND a.concurrency_limit IS NOT NULL))), 0)::bigint AS startable
    FROM (
        SELECT one.key, count(*) AS tasks FROM (
            SELECT t.concurrency_key AS key FROM tasks t
            WHERE t.provider = q.provider AND t.actor = q.actor AND t.concurrency_key IS NOT NULL AND t.held = '{}'
              AND NOT t.job_open
    AND t.status IN ('queued', 'retrying') AND t.available_at <= now()
    AND (t.expires_at IS NULL OR t.expires_at > now())
            ORDER BY t.concurrency_key LIMIT 10000
        ) AS one GROUP BY one.key
    ) AS of_key
) AS keyed
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE counted.key IS NULL) AS tasks FROM (
        SELECT counted.key FROM (VALUES ('fresh'), ('retry')) AS of(lane)
        CROSS JOIN generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT t.concurrency_key AS key FROM tasks t
            WHERE t.queue = q.name AND t.lane = of.lane AND t.priority = level.priority
              AND t.doorbell_token IS NULL AND NOT t.job_open
    AND t.status IN ('queued', 'retrying') AND t.available_at <= now()
    AND (t.expires_at IS NULL OR t.expires_at > now())
            -- Those with keys stand among the others, and are passed over.
            ORDER BY t.available_at LIMIT CASE WHEN keyed.tasks > 0 THEN 10000
                ELSE least(coalesce(p.limit_override, p.configured_limit), 10000) END
        ) AS counted
        LIMIT 10000
    ) AS counted
) AS unrung
CROSS JOIN LATERAL (SELECT coalesce(p.rate_override, p.configured_rate) AS in_force) AS rate
CROSS JOIN LATERAL (
    SELECT greatest(0, (rate.in_force ->> 'limit')::int - coalesce(sum(taken.places), 0)) AS places
    FROM unnest(p.rate_moments, p.rate_counts) AS taken(at, places)
    WHERE taken.at + make_interval(secs => (rate.in_force ->> 'per_seconds')::float * 21 / 20) > now()
) AS unused
CROSS JOIN LATERAL (
    -- What there is none of, a limit or a rate, is null, and `least` passes it over.
    SELECT greatest(0, least(
        rung.tasks + unrung.tasks + keyed.startable,
        coalesce(p.limit_override, p.configured_limit) - whole.running - whole.held,
        CASE WHEN rate.in_force IS NOT NULL THEN unused.places END))::bigint AS admitted
) AS waiting;
END $$
"""
"""Replaced, not made anew: the view upon it stays, and who was allowed to read it still is."""


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
    op.execute(READ_DEMAND)
