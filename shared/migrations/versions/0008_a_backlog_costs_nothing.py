"""What a long backlog and many dependents cost: dependents told in pages, the living of a user, what is counted."""

from alembic import op

revision = "0008"
down_revision = "0007"

CHANGES = """
CREATE TABLE unsettled (
    unsettled_id BIGINT GENERATED ALWAYS AS IDENTITY,
    parent_id UUID NOT NULL,
    revived BOOLEAN DEFAULT false NOT NULL,
    settled_to UUID DEFAULT '00000000-0000-0000-0000-000000000000' NOT NULL,
    since TIMESTAMPTZ DEFAULT clock_timestamp() NOT NULL,
    CONSTRAINT unsettled_pkey PRIMARY KEY (unsettled_id)
);

DROP INDEX tasks_due;

CREATE INDEX tasks_due ON tasks (provider, lane, priority, available_at, task_id) INCLUDE (user_id)
WHERE status IN ('queued', 'retrying') AND doorbell_token IS NULL;

CREATE INDEX tasks_live_user ON tasks (user_id, task_id) WHERE status IN ('blocked', 'queued', 'running', 'retrying');

CREATE INDEX tasks_live_retry ON tasks (task_id)
WHERE status IN ('blocked', 'queued', 'running', 'retrying') AND lane = 'retry';

CREATE INDEX tasks_live_error ON tasks (task_id)
WHERE status IN ('blocked', 'queued', 'running', 'retrying') AND error IS NOT NULL;

CREATE INDEX tasks_live_project ON tasks (project_id, task_id)
WHERE status IN ('blocked', 'queued', 'running', 'retrying') AND project_id IS NOT NULL;

CREATE INDEX tasks_live_workflow ON tasks (workflow_id, task_id)
WHERE status IN ('blocked', 'queued', 'running', 'retrying') AND workflow_id IS NOT NULL;

CREATE INDEX tasks_live_workflow_run ON tasks (workflow_run_id, task_id)
WHERE status IN ('blocked', 'queued', 'running', 'retrying') AND workflow_run_id IS NOT NULL;

CREATE INDEX tasks_live_interaction ON tasks (interaction_id, task_id)
WHERE status IN ('blocked', 'queued', 'running', 'retrying') AND interaction_id IS NOT NULL;

CREATE INDEX tasks_live_parent ON tasks (parent_task_id, task_id)
WHERE status IN ('blocked', 'queued', 'running', 'retrying') AND parent_task_id IS NOT NULL;

INSERT INTO task_tallies (user_id, provider, status, tasks)
SELECT user_id, provider, 'submitted', sum(tasks) FROM (
    SELECT user_id, provider, count(*) AS tasks FROM tasks
    WHERE status IN ('blocked', 'queued', 'running', 'retrying') GROUP BY user_id, provider
    UNION ALL SELECT user_id, provider, tasks FROM task_counts WHERE user_id <> ''
    UNION ALL SELECT user_id, provider, tasks FROM task_tallies
) AS stored GROUP BY user_id, provider;

INSERT INTO task_tallies (user_id, provider, status, tasks)
SELECT user_id, provider, 'blocked', count(*) FROM tasks WHERE status = 'blocked' GROUP BY user_id, provider
"""
"""Making the index keeps everybody from writing to the tasks until all of this is done, so what is counted is true."""

READ_DEMAND = """
CREATE FUNCTION read_demand() RETURNS TABLE (queue text, wanted bigint) LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = public, pg_temp SET jit = off SET enable_sort = off SET enable_seqscan = off AS $$
BEGIN
RETURN QUERY
SELECT p.actor || '.' || p.name AS queue,
       running.tasks + CASE
           WHEN p.paused OR p.paused_until > now() OR p.breaker_until > now() THEN 0
           WHEN p.paused_until IS NOT NULL OR p.breaker_state <> 'closed'
               THEN CASE WHEN running.trials > 0 THEN 0 ELSE least(1, resuming.due + waiting.admitted) END
           ELSE resuming.due + waiting.admitted
       END AS wanted
FROM providers p
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks, count(*) FILTER (WHERE t.claim_token = p.trial_token) AS trials
    FROM tasks t WHERE t.provider = p.name AND t.status = 'running'
) AS running
CROSS JOIN LATERAL (
    SELECT count(*) AS held, count(*) FILTER (WHERE t.status IN ('queued', 'retrying') AND t.available_at <= now()
    AND (t.expires_at IS NULL OR t.expires_at > now())) AS due
    FROM tasks t WHERE t.provider = p.name AND t.job_open AND t.status <> 'running'
) AS resuming
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks FROM tasks t
    WHERE t.provider = p.name AND t.doorbell_token IS NOT NULL AND NOT t.job_open
    AND t.status IN ('queued', 'retrying') AND t.available_at <= now()
    AND (t.expires_at IS NULL OR t.expires_at > now())
) AS rung
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks FROM (
        SELECT 1 FROM (VALUES ('fresh'), ('retry')) AS of(lane) CROSS JOIN generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT 1 FROM tasks t
            WHERE t.provider = p.name AND t.lane = of.lane AND t.priority = level.priority
              AND t.doorbell_token IS NULL AND NOT t.job_open
    AND t.status IN ('queued', 'retrying') AND t.available_at <= now()
    AND (t.expires_at IS NULL OR t.expires_at > now())
            ORDER BY t.available_at LIMIT least(coalesce(p.limit_override, p.configured_limit), 10000)
        ) AS counted
        LIMIT 10000
    ) AS counted
) AS unrung
CROSS JOIN LATERAL (
    SELECT CASE
        WHEN coalesce(p.limit_override, p.configured_limit) IS NULL THEN rung.tasks + unrung.tasks
        ELSE greatest(0, least(
            rung.tasks + unrung.tasks,
            coalesce(p.limit_override, p.configured_limit) - running.tasks - resuming.held))
    END AS admitted
) AS waiting;
END $$
"""

SCALE_DEMAND = "CREATE OR REPLACE VIEW scale_demand AS SELECT queue, wanted FROM read_demand()"
"""Replaced, not made anew: who was allowed to read it still is."""


def upgrade() -> None:
    for statement in CHANGES.split(";\n"):
        op.execute(statement)
    op.execute(READ_DEMAND)
    op.execute(SCALE_DEMAND)
