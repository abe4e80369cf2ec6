"""Doorbells are credit: nothing is marked to be rung for, and who is next is decided by the claim."""

from alembic import op

revision = "0016"
down_revision = "0015"

MARKS = """
ALTER TABLE tasks DROP CONSTRAINT tasks_counters_check, DROP CONSTRAINT tasks_held_check,
    DROP CONSTRAINT tasks_doorbell_check;

DROP INDEX tasks_due;

DROP INDEX tasks_rung;

ALTER TABLE tasks DROP COLUMN doorbell_token, DROP COLUMN doorbell_at, DROP COLUMN doorbell_count,
    ADD COLUMN turn_at timestamptz,
    ADD CONSTRAINT tasks_counters_check CHECK (
        attempt >= 0 AND retry_count >= 0 AND max_retries >= 0 AND interrupt_count >= 0
        AND stall_count >= 0 AND rate_limited_count >= 0 AND report_count >= 0 AND unmet >= 0 AND last_seq >= 1),
    ADD CONSTRAINT tasks_held_check CHECK (
        (held = '{}') = (due_at IS NULL) AND (held = '{}') = (held_at IS NULL)
        AND (held = '{}' OR (status IN ('blocked', 'queued', 'retrying') AND available_at = 'infinity'
                             AND NOT job_open)));

CREATE INDEX tasks_due ON tasks (queue, lane, priority, available_at, task_id) INCLUDE (user_id)
WHERE status IN ('queued', 'retrying');

CREATE INDEX tasks_suspected ON tasks (suspicion, queue) WHERE status IN ('queued', 'retrying') AND suspicion >= 2;

CREATE INDEX tasks_of_worker ON tasks (worker_id) WHERE status = 'running'
"""
"""What had been rung for is due."""

PROVIDERS = """
ALTER TABLE providers DROP CONSTRAINT providers_dispatch_version_check, DROP COLUMN dispatch_version,
    ADD COLUMN retry_share integer DEFAULT 30 NOT NULL,
    ADD CONSTRAINT providers_retry_share_check CHECK (retry_share BETWEEN 0 AND 100)
"""

WORKERS = "ALTER TABLE workers ADD COLUMN claim_epoch integer DEFAULT 0 NOT NULL"

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
              AND NOT t.job_open
    AND t.status IN ('queued', 'retrying') AND t.available_at <= now()
    AND (t.expires_at IS NULL OR t.expires_at > now())
            -- Those with keys stand among the others, and are passed over.
            ORDER BY t.available_at LIMIT CASE WHEN keyed.tasks > 0 THEN 10000
                ELSE least(coalesce(p.limit_override, p.configured_limit), 10000) END
        ) AS counted
        LIMIT 10000
    ) AS counted
) AS plain
CROSS JOIN LATERAL (SELECT coalesce(p.rate_override, p.configured_rate) AS in_force) AS rate
CROSS JOIN LATERAL (
    SELECT greatest(0, (rate.in_force ->> 'limit')::int - coalesce(sum(taken.places), 0)) AS places
    FROM unnest(p.rate_moments, p.rate_counts) AS taken(at, places)
    WHERE taken.at + make_interval(secs => (rate.in_force ->> 'per_seconds')::float * 21 / 20) > now()
) AS unused
CROSS JOIN LATERAL (
    -- What there is none of, a limit or a rate, is null, and `least` passes it over.
    SELECT greatest(0, least(
        plain.tasks + keyed.startable,
        coalesce(p.limit_override, p.configured_limit) - whole.running - whole.held,
        CASE WHEN rate.in_force IS NOT NULL THEN unused.places END))::bigint AS admitted
) AS waiting;
END $$
"""


def upgrade() -> None:
    for statements in (MARKS, PROVIDERS, WORKERS):
        for statement in statements.split(";\n"):
            op.execute(statement)
    op.execute(READ_DEMAND)
