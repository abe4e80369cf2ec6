"""A database in which very many tasks wait: queued, scheduled for tomorrow, blocked and in retry."""

from dataclasses import dataclass

import asyncpg

from windlass.shared.store.functions import named


@dataclass(frozen=True)
class Waiting:
    """How many of each kind, and how many dependents each parent has."""

    queued: int
    scheduled: int
    blocked: int
    retrying: int
    dependents: int = 100

    @property
    def parents(self) -> int:
        return max(1, self.blocked // self.dependents)


TASKS = """
INSERT INTO tasks (
    task_id, actor, provider, status, lane, unmet, payload, timeout_seconds, available_at, created_at, updated_at,
    user_id, max_age_seconds, expires_at)
SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint - 2000000 + n), 12, '0') || '7'
        || substr(md5(n::text), 1, 3) || '8' || substr(md5(n::text), 4, 15))::uuid,
       'probe', 'probe', kind.status, CASE kind.status WHEN 'retrying' THEN 'retry' ELSE 'fresh' END,
       (kind.status = 'blocked')::int, '{"outcome": "ok"}', 120,
       now() - interval '1 h' + CASE WHEN kind.later THEN interval '1 day' ELSE n * interval '1 ms' END, now(), now(),
       'user-' || n % 40, CASE WHEN n % 2 = 0 THEN 864000 END, CASE WHEN n % 2 = 0 THEN now() + interval '10 days' END
FROM generate_series(1, $1::int + $2 + $3 + $4) AS n
CROSS JOIN LATERAL (
    SELECT CASE WHEN n > $1 + $2 + $3 THEN 'retrying' WHEN n > $1 + $2 THEN 'blocked' ELSE 'queued' END AS status,
           n > $1 AND n <= $1 + $2 AS later
) AS kind
"""

EDGES = """
INSERT INTO task_dependencies (parent_id, child_id)
SELECT parents.ids[1 + numbered.n % $1::int], numbered.task_id
FROM (
    -- Those that come last: what starts while it is measured is nobody's parent.
    SELECT array_agg(task_id) AS ids FROM (
        SELECT task_id FROM tasks WHERE status = 'queued' AND available_at <= now()
        ORDER BY task_id DESC OFFSET 1 LIMIT $1
    ) AS p
) AS parents, (SELECT task_id, row_number() OVER ()::int AS n FROM tasks WHERE status = 'blocked') AS numbered
"""

PROVIDERS = """
INSERT INTO providers (name, actor, configured_limit)
VALUES ('probe', 'probe', 3), ('midjourney', 'media', 3), ('openrouter', 'summarize', 20), ('local', 'agent', NULL)
ON CONFLICT (name) DO UPDATE SET configured_limit = excluded.configured_limit;

INSERT INTO queues (queue, provider, actor) SELECT actor || '.' || name, name, actor FROM providers
ON CONFLICT (queue) DO NOTHING
"""

INDEXES = """
SELECT indexname AS name, indexdef AS definition FROM pg_indexes WHERE tablename = 'tasks' AND indexname <> 'tasks_pkey'
"""


async def fill(url: str, waiting: Waiting) -> None:
    """The indexes are made afterwards: the result is the same, and it takes a quarter of the time."""
    connection = await asyncpg.connect(url)
    try:
        await connection.execute("SET synchronous_commit = off; SET maintenance_work_mem = '256MB'")
        indexes = await connection.fetch(INDEXES)
        for index in indexes:
            await connection.execute(f"DROP INDEX {index['name']}")
        await connection.execute(PROVIDERS)
        await connection.execute(TASKS, waiting.queued, waiting.scheduled, waiting.blocked, waiting.retrying)
        for index in indexes:
            await connection.execute(index["definition"])
        if waiting.blocked:
            await connection.execute(EDGES, waiting.parents)
        await connection.execute(f"SELECT {named('mend_tallies')}()")
        await connection.execute("VACUUM (ANALYZE) tasks")
        await connection.execute("ANALYZE task_dependencies")
    finally:
        await connection.close()
