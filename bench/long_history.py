"""Fills a database with a long history of tasks, as they would have come in over months, and some that still live."""

import asyncpg

USERS, PROJECTS, LIVE = 40, 200, 3000

SETTINGS = "SET maintenance_work_mem = '512MB'; SET max_parallel_maintenance_workers = 2; SET synchronous_commit = off"

FINISHED = """
INSERT INTO tasks (
    task_id, actor, provider, status, lane, payload, result, error, attempt, retry_count, timeout_seconds,
    created_at, updated_at, started_at, completed_at, user_id, tags, project_id, workflow_id, parent_task_id)
SELECT
    (lpad(to_hex((extract(epoch FROM made.at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
     || '8' || substr(md5(n::text), 4, 15))::uuid,
    (ARRAY['media', 'media', 'summarize', 'agent'])[1 + n % 4],
    (ARRAY['midjourney', 'leonardo', 'openrouter', 'local'])[1 + n % 4],
    made.status, CASE WHEN chance.lane < 0.05 OR made.status = 'dead' THEN 'retry' ELSE 'fresh' END,
    jsonb_build_object('prompt', (
        SELECT string_agg((ARRAY['a','portrait','of','the','golden','city','under','heavy','rain','painted','in','oil',
            'with','soft','light','and','long','shadows','summary','report','about','market','growth','engine','ship',
            'winter','forest','robot','garden','music'])[1 + floor(random() * 30)::int], ' ')
        FROM generate_series(1, 24 + n % 2))
        || CASE WHEN n % 1000 = 7 THEN ' heliotrope' WHEN n <= 20 THEN ' zeppelin' ELSE '' END),
    CASE made.status WHEN 'completed' THEN '{"generation_id": "g", "urls": []}'::jsonb END,
    CASE made.status WHEN 'dead' THEN jsonb_build_object(
        'type', (ARRAY['ContentRejected', 'ServiceUnavailable', 'NetworkTimeout'])[1 + n % 3], 'kind', 'permanent',
        'message', (ARRAY['the prompt was rejected', 'answered 503', 'no answer from host'])[1 + n % 3]
                   || ' for job ' || md5(n::text), 'details', '{}'::jsonb, 'stack_trace', repeat('line ', 100),
        'attempt', 1) END,
    1, 0, 900, made.at, made.at + interval '40 s', made.at, made.at + interval '40 s',
    'user-' || floor(40 * chance.owner * chance.owner * chance.owner)::int,
    CASE WHEN chance.tag < 0.3 THEN ARRAY['nightly'] WHEN chance.tag < 0.4 THEN ARRAY['nightly', 'customer-' || n % 500]
         WHEN n <= 20 THEN ARRAY['launch'] ELSE '{}' END,
    CASE WHEN chance.project < 0.3 THEN 'project-' || n % 200 END,
    CASE WHEN chance.project < 0.1 THEN 'workflow-' || n / 10 END,
    CASE WHEN n % 50 = 0 THEN '01890000-0000-7000-8000-000000000000'::uuid END
FROM generate_series(1, $1::int) AS n
CROSS JOIN LATERAL (
    SELECT random() + n * 0 AS owner, random() + n * 0 AS tag, random() + n * 0 AS project, random() + n * 0 AS lane,
           random() + n * 0 AS ending
) AS chance
CROSS JOIN LATERAL (
    SELECT now() - ($1::int - n + 1) * interval '30 s' AS at,
           CASE WHEN chance.ending < 0.03 THEN 'dead'
                WHEN chance.ending < 0.05 THEN 'cancelled' ELSE 'completed' END AS status
) AS made
"""

ALIVE = """
INSERT INTO tasks (task_id, actor, provider, status, lane, payload, timeout_seconds, available_at, user_id)
SELECT (lpad(to_hex((extract(epoch FROM now()) * 1000)::bigint), 12, '0') || '7' || substr(md5('live' || n), 1, 3)
        || '8' || substr(md5('live' || n), 4, 15))::uuid,
       'summarize', 'openrouter', CASE WHEN n % 5 = 0 THEN 'retrying' ELSE 'queued' END,
       CASE WHEN n % 5 = 0 THEN 'retry' ELSE 'fresh' END, '{"content": "something to read"}', 120,
       now() + (n % 3) * interval '1 hour', 'user-' || n % 40
FROM generate_series(1, $1::int) AS n
"""

COUNTED = """
INSERT INTO task_tallies (user_id, provider, status, tasks)
SELECT user_id, provider, status, count(*) FROM tasks WHERE completed_at IS NOT NULL GROUP BY user_id, provider, status
"""

PROVIDERS = """
INSERT INTO providers (name, actor)
VALUES ('midjourney', 'media'), ('leonardo', 'media'), ('openrouter', 'summarize'), ('local', 'agent')
"""


async def fill(database_url: str, tasks: int) -> None:
    """The indexes are made afterwards: the result is the same, and it does not take all day."""
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(SETTINGS)
        indexes = await connection.fetch(
            "SELECT indexname, indexdef FROM pg_indexes WHERE tablename = 'tasks' AND indexname <> 'tasks_pkey'"
        )
        for index in indexes:
            await connection.execute(f"DROP INDEX {index['indexname']}")
        await connection.execute(FINISHED, tasks)
        await connection.execute(ALIVE, LIVE)
        await connection.execute(COUNTED)
        await connection.execute(PROVIDERS)
        for index in indexes:
            await connection.execute(index["indexdef"])
        await connection.execute("VACUUM ANALYZE tasks")
    finally:
        await connection.close()
