"""A view for autoscalers: how many tasks of each queue run, or could if somebody were there to run them."""

from alembic import op

revision = "0005"
down_revision = "0004"

SCALE_DEMAND = """
CREATE VIEW scale_demand AS
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
    SELECT count(*) AS held, count(*) FILTER (
        WHERE t.status IN ('queued', 'retrying') AND t.available_at <= now()
          AND (t.expires_at IS NULL OR t.expires_at > now())
    ) AS due
    FROM tasks t WHERE t.provider = p.name AND t.job_open AND t.status <> 'running'
) AS resuming
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks FROM (
        SELECT 1 FROM tasks t
        WHERE t.provider = p.name AND t.doorbell_token IS NOT NULL AND NOT t.job_open
          AND t.status IN ('queued', 'retrying') AND t.available_at <= now()
          AND (t.expires_at IS NULL OR t.expires_at > now())
        LIMIT 10000
    ) AS counted
) AS rung
CROSS JOIN LATERAL (
    SELECT count(*) AS tasks
    FROM (VALUES ('fresh'), ('retry')) AS of(lane) CROSS JOIN generate_series(0, 9) AS level(priority)
    CROSS JOIN LATERAL (
        SELECT 1 FROM tasks t
        WHERE t.provider = p.name AND t.lane = of.lane AND t.priority = level.priority
          AND t.doorbell_token IS NULL AND NOT t.job_open
          AND t.status IN ('queued', 'retrying') AND t.available_at <= now()
          AND (t.expires_at IS NULL OR t.expires_at > now())
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
) AS waiting
"""


def upgrade() -> None:
    op.execute(SCALE_DEMAND)
    op.execute("GRANT SELECT ON scale_demand TO PUBLIC")
