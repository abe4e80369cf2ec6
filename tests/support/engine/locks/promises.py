"""What holds after all that happened in a yard, once the janitor has told the dependents that were left to it."""

from tests.support.engine.locks.yard import KEY_LIMITS, PROVIDERS, Yard
from windlass.shared.store.flow_control import keys
from windlass.shared.store.operating import queues
from windlass.shared.store.tasks import dependencies

GAPS = """
SELECT t.task_id FROM tasks t LEFT JOIN (
    SELECT task_id, count(*) AS events, max(seq) AS last FROM task_events GROUP BY task_id
) AS e USING (task_id)
WHERE (t.last_seq, t.last_seq) IS DISTINCT FROM (e.events, e.last)
"""
LEFT_BEHIND = """
SELECT t.task_id FROM tasks t WHERE t.status = 'blocked' AND (
    NOT EXISTS (
        SELECT 1 FROM task_dependencies d JOIN tasks p ON p.task_id = d.parent_id
        WHERE d.child_id = t.task_id AND p.status <> 'completed')
    OR EXISTS (
        SELECT 1 FROM task_dependencies d JOIN tasks p ON p.task_id = d.parent_id
        WHERE d.child_id = t.task_id AND p.status IN ('dead', 'cancelled')))
"""
BURIED_BY_THE_LIVING = """
SELECT t.task_id FROM tasks t
WHERE t.status = 'dead' AND t.error ->> 'type' = 'DependencyFailed' AND t.dedupe_key IS NULL AND NOT EXISTS (
    SELECT 1 FROM task_dependencies d JOIN tasks p ON p.task_id = d.parent_id
    WHERE d.child_id = t.task_id AND p.status IN ('dead', 'cancelled'))
"""
"""One with a key may stay dead, because somebody else lives under it."""
SLOTS = "SELECT provider, count(*) AS running FROM tasks WHERE status = 'running' GROUP BY provider"


KEYS = """
SELECT provider, concurrency_key, count(*) AS taken FROM tasks
WHERE concurrency_key IS NOT NULL AND (status = 'running' OR job_open) GROUP BY provider, concurrency_key
"""
LEFT_PARKED = """
SELECT t.task_id FROM tasks t WHERE t.held = '{key}' AND (
    SELECT count(*) FROM tasks o WHERE o.provider = t.provider AND o.concurrency_key = t.concurrency_key
        AND (o.status = 'running' OR o.job_open
             OR (o.status IN ('queued', 'retrying') AND o.held = '{}' AND o.available_at <= now()
                 AND (o.expires_at IS NULL OR o.expires_at > now())))
    ) < (SELECT concurrency_limit FROM actors WHERE name = 'probe')
"""


async def check_promises(yard: Yard) -> None:
    while await dependencies.settle_next(yard.pool):
        pass
    stored = {row["task_id"] for row in await yard.pool.fetch("SELECT task_id FROM tasks")}
    assert stored == yard.everybody, "no task is lost, and none comes of nothing"
    assert await yard.pool.fetch(GAPS) == [], "histories without gaps"
    assert await yard.pool.fetch(LEFT_BEHIND) == [], "nobody waits for what has happened"
    assert await yard.pool.fetch(BURIED_BY_THE_LIVING) == [], "nobody is dead because of somebody who lives"
    for row in await yard.pool.fetch(SLOTS):
        limit = PROVIDERS[row["provider"]]
        assert limit is None or row["running"] <= limit, f"{row['provider']} runs {row['running']}"
    for row in await yard.pool.fetch(KEYS):
        assert row["taken"] <= max(KEY_LIMITS), f"{row['concurrency_key']} is taken {row['taken']} times"
    assert not (await keys.recheck(yard.pool)).hindered
    assert await yard.pool.fetch(LEFT_PARKED) == [], "nobody is parked beside a key that has room"
    assert await queues.mend_tallies(yard.pool) == 0, "everybody is counted"
