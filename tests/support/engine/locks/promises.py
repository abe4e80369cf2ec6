"""What holds after all that happened in a yard, once the janitor and the orchestrator have done what was left."""

from tests.support.engine.locks.yard import KEY_LIMITS, PROVIDERS, Yard
from tests.support.engine.webhooks import catch_up
from tests.support.engine.workflows import tidy_up
from windlass.shared.features.workflows import operations as workflows
from windlass.shared.store.flow_control import keys
from windlass.shared.store.operating import queues
from windlass.shared.store.projects import looking_after

GAPS = """
SELECT t.task_id FROM tasks t LEFT JOIN (
    SELECT task_id, count(*) AS events, max(seq) AS last FROM task_events GROUP BY task_id
) AS e USING (task_id)
WHERE (t.last_seq, t.last_seq) IS DISTINCT FROM (e.events, e.last)
"""
LEFT_BEHIND = """
WITH edges AS (
    SELECT d.child_id, d.met_on, coalesce(p.status, b.status) AS status FROM task_dependencies d
    LEFT JOIN tasks p ON p.task_id = d.parent_id LEFT JOIN barriers b ON b.barrier_id = d.parent_id
)
SELECT t.task_id FROM tasks t WHERE t.status = 'blocked' AND (
    NOT EXISTS (
        SELECT 1 FROM edges e WHERE e.child_id = t.task_id AND e.status <> 'completed'
          AND (e.met_on = 'completed' OR e.status NOT IN ('dead', 'cancelled')))
    AND (t.approval IS NULL OR t.approval ->> 'decision' = 'approved' OR t.asked_at IS NULL)
    OR EXISTS (
        SELECT 1 FROM edges e
        WHERE e.child_id = t.task_id AND e.met_on = 'completed' AND e.status IN ('dead', 'cancelled')))
"""
BURIED_BY_THE_LIVING = """
SELECT t.task_id FROM tasks t
WHERE t.status = 'dead' AND t.error ->> 'type' = 'DependencyFailed' AND t.dedupe_key IS NULL AND NOT EXISTS (
    SELECT 1 FROM task_dependencies d
    LEFT JOIN tasks p ON p.task_id = d.parent_id LEFT JOIN barriers b ON b.barrier_id = d.parent_id
    WHERE d.child_id = t.task_id AND coalesce(p.status, b.status) IN ('dead', 'cancelled'))
  AND NOT EXISTS (SELECT 1 FROM workflows w WHERE w.workflow_id::text = t.workflow_id AND w.cancel_requested)
"""
"""One with a key may stay dead, because somebody else lives under it. Nothing of a cancelled workflow comes back."""
LOOSE = """
SELECT t.task_id, t.status, t.held, w.status AS of FROM tasks t JOIN workflows w ON w.workflow_id = t.group_id
WHERE t.status IN ('blocked', 'queued', 'retrying') AND NOT t.job_open
  AND (w.cancel_requested OR (w.status = 'escalated') <> ('workflow' = ANY (t.held)))
"""
MISJUDGED = """
SELECT w.workflow_id FROM workflows w JOIN task_groups g ON g.group_id = w.workflow_id
WHERE g.is_closed <> w.cancel_requested
   OR w.failures <> (SELECT count(*) FROM group_failures f WHERE f.group_id = w.workflow_id)
"""
SUBMITTED = """
SELECT task_id FROM tasks
WHERE project_id IS NULL AND workflow_key IS NULL AND schedule_id IS NULL AND actor <> 'webhook'
"""
"""By somebody from outside, and not by a project, by a schedule or as one of a list, nor to carry a delivery."""
SLOTS = "SELECT provider, count(*) AS running FROM tasks WHERE status = 'running' GROUP BY provider"


LIVE_IN_IDLE = """
SELECT t.task_id FROM tasks t JOIN projects p ON p.project_id::text = t.project_id
WHERE t.concerns & 1 <> 0 AND t.completed_at IS NULL AND p.state = 'idle'
"""
KEYS = """
SELECT provider, concurrency_key, count(*) AS taken FROM tasks
WHERE concurrency_key IS NOT NULL AND actor = 'probe' AND (status = 'running' OR job_open)
GROUP BY provider, concurrency_key
"""
LEFT_PARKED = """
SELECT t.task_id FROM tasks t WHERE t.held = '{key}' AND t.actor = 'probe' AND (
    SELECT count(*) FROM tasks o WHERE o.provider = t.provider AND o.concurrency_key = t.concurrency_key
        AND (o.status = 'running' OR o.job_open
             OR (o.status IN ('queued', 'retrying') AND o.held = '{}' AND o.available_at <= now()
                 AND (o.expires_at IS NULL OR o.expires_at > now())))
    ) < (SELECT concurrency_limit FROM actors WHERE name = 'probe')
"""


STARTED_OTHERWISE = """
SELECT t.task_id FROM tasks t FULL JOIN (SELECT * FROM schedule_runs WHERE task_id IS NOT NULL) AS r USING (task_id)
WHERE (t.schedule_id IS NOT NULL OR r.schedule_id IS NOT NULL) AND t.schedule_id IS DISTINCT FROM r.schedule_id
"""
WAIT_TOGETHER = "SELECT schedule_id FROM schedule_runs WHERE outcome = 'waiting' GROUP BY 1 HAVING count(*) > 1"
DISAGREEING = """
SELECT d.delivery_id, d.state, t.status FROM deliveries d LEFT JOIN tasks t ON t.task_id = d.task_id
WHERE d.state IS DISTINCT FROM CASE t.status WHEN 'completed' THEN 'delivered' WHEN 'dead' THEN 'failed'
                                             WHEN 'cancelled' THEN 'failed' ELSE 'waiting' END
"""
UNDELIVERED = """
SELECT t.task_id FROM tasks t WHERE t.webhook_id IS NOT NULL AND t.completed_at IS NOT NULL AND NOT EXISTS (
    SELECT 1 FROM deliveries d
    WHERE d.webhook_id = t.webhook_id AND d.subject = t.task_id::text AND d.life = t.life)
"""


async def check_promises(yard: Yard) -> None:
    await tidy_up(yard.engine)
    await catch_up(yard.engine)
    assert await yard.pool.fetch(DISAGREEING) == [], "every delivery is what its task is"
    assert await yard.pool.fetch(UNDELIVERED) == [], "every end is told to whom it names"
    stored = {row["task_id"] for row in await yard.pool.fetch(SUBMITTED)}
    kept = {row["task_id"] for row in await yard.pool.fetch("SELECT task_id FROM tasks")}
    assert stored <= yard.everybody <= kept, "no task is lost, and none comes of nothing"
    assert await looking_after.count_orphans(yard.pool) == 0, "every project knows what became of its run"
    assert await yard.pool.fetch(LIVE_IN_IDLE) == [], "no task of a run lives in a project that is idle"
    assert await workflows.count_drift(yard.pool) == [], "every workflow counts what its tasks are"
    assert await yard.pool.fetch(MISJUDGED) == [], "every group stops its tasks as its workflow says"
    assert await yard.pool.fetch(LOOSE) == [], "what waits of an escalated workflow is held, and of no other"
    assert await yard.pool.fetch(STARTED_OTHERWISE) == [], "what a schedule started has its due time, and that its task"
    assert await yard.pool.fetch(WAIT_TOGETHER) == [], "one waits, and no other"
    assert await yard.pool.fetch(GAPS) == [], "histories without gaps"
    assert await yard.pool.fetch(LEFT_BEHIND) == [], "nobody waits for what has happened"
    assert await yard.pool.fetch(BURIED_BY_THE_LIVING) == [], "nobody is dead because of somebody who lives"
    for row in await yard.pool.fetch(SLOTS):
        limit = PROVIDERS.get(row["provider"])
        assert limit is None or row["running"] <= limit, f"{row['provider']} runs {row['running']}"
    for row in await yard.pool.fetch(KEYS):
        assert row["taken"] <= max(KEY_LIMITS), f"{row['concurrency_key']} is taken {row['taken']} times"
    assert not (await keys.recheck(yard.pool)).hindered
    assert await yard.pool.fetch(LEFT_PARKED) == [], "nobody is parked beside a key that has room"
    assert await queues.mend_tallies(yard.pool) == 0, "everybody is counted"
