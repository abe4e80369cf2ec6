"""Fills a database with a long history of tasks, as they would have come in over months, and some that still live."""

import asyncpg

USERS, PROJECTS, LIVE = 40, 200, 3000

SETTINGS = "SET maintenance_work_mem = '512MB'; SET max_parallel_maintenance_workers = 2; SET synchronous_commit = off"

PROMPTS = """
CREATE TEMPORARY TABLE prompts AS
SELECT number, string_agg((ARRAY['a','portrait','of','the','golden','city','under','heavy','rain','painted','in','oil',
    'with','soft','light','and','long','shadows','summary','report','about','market','growth','engine','ship',
    'winter','forest','robot','garden','music'])[1 + floor(random() * 30)::int], ' ') AS text
FROM generate_series(0, 4999) AS number, generate_series(1, 10) AS word GROUP BY number
"""

FINISHED = """
INSERT INTO tasks (
    task_id, actor, provider, status, lane, payload, result, error, attempt, retry_count, timeout_seconds,
    created_at, updated_at, started_at, completed_at, user_id, tags, project_id, workflow_id, parent_task_id, last_seq)
SELECT
    (lpad(to_hex((extract(epoch FROM made.at) * 1000)::bigint), 12, '0') || '7' || substr(md5(n::text), 1, 3)
     || '8' || substr(md5(n::text), 4, 15))::uuid,
    (ARRAY['media', 'media', 'summarize', 'agent'])[1 + n % 4],
    (ARRAY['midjourney', 'leonardo', 'openrouter', 'local'])[1 + n % 4],
    made.status, CASE WHEN chance.lane < 0.05 OR made.status = 'dead' THEN 'retry' ELSE 'fresh' END,
    jsonb_build_object('prompt', prompts.text
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
    CASE WHEN n % 50 = 0 THEN '01890000-0000-7000-8000-000000000000'::uuid END, 4
FROM generate_series(1, $1::int) AS n
JOIN prompts ON prompts.number = n % 5000
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

EVENTS = """
INSERT INTO task_events (task_id, seq, type, at, attempt, data)
SELECT t.task_id, told.seq, coalesce(told.type, ended.type),
       CASE WHEN told.seq < 4 THEN t.created_at ELSE t.completed_at END, CASE WHEN told.seq < 3 THEN 0 ELSE 1 END,
       CASE told.seq WHEN 1 THEN '{"status": "queued"}'::jsonb
                     WHEN 2 THEN '{"status": "queued"}'::jsonb
                     WHEN 3 THEN '{"status": "running", "elapsed_ms": 0, "worker_id": "worker-1-0123abcd"}'::jsonb
                     ELSE ended.data END
FROM tasks t
JOIN (VALUES ('completed', 'complete', '{"status": "completed", "elapsed_ms": 40000}'::jsonb),
             ('dead', 'bury', '{"status": "dead", "error": {"type": "ContentRejected", "kind": "permanent"}}'),
             ('cancelled', 'cancel', '{"status": "cancelled"}')) AS ended(status, type, data) USING (status)
CROSS JOIN (VALUES (1, 'submit'), (2, 'dispatch'), (3, 'claim'), (4, NULL)) AS told(seq, type)
"""

FIGURES = """
INSERT INTO task_queue_metrics (
    day, actor, subagent_type, provider, user_id, project_id, created, completed, failed, cancelled, latency_ms,
    running, heartbeat_delay_ms)
SELECT (created_at AT TIME ZONE 'UTC')::date, actor, '', provider, user_id, '', count(*),
       count(*) FILTER (WHERE status = 'completed'), count(*) FILTER (WHERE status = 'dead'),
       count(*) FILTER (WHERE status = 'cancelled'), 40000 * count(*) FILTER (WHERE status = 'completed'), 0, 0
FROM tasks WHERE completed_at IS NOT NULL GROUP BY 1, 2, 4, 5
"""

TAGS = "INSERT INTO task_tags (tag, task_id) SELECT tag, task_id FROM tasks, unnest(tags) AS tag ORDER BY tag, task_id"

COUNTED = """
INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
SELECT user_id, provider, actor, status, count(*) FROM tasks
WHERE completed_at IS NOT NULL GROUP BY user_id, provider, actor, status
"""

PROVIDERS = """
INSERT INTO providers (name, actor)
VALUES ('midjourney', 'media'), ('leonardo', 'media'), ('openrouter', 'summarize'), ('local', 'agent');

INSERT INTO queues (queue, provider, actor) SELECT actor || '.' || name, name, actor FROM providers
"""


INDEXES = """
SELECT indexname AS name, indexdef AS definition FROM pg_indexes
WHERE tablename IN ('tasks', 'task_events') AND indexname NOT IN ('tasks_pkey', 'task_events_pkey')
"""


ROOM = (
    "SELECT option FROM pg_class, unnest(reloptions) AS option WHERE relname = 'tasks' AND option LIKE 'fillfactor=%'"
)
"""Old pages are as full as they get: what room they kept, the ends of their own tasks have taken."""


async def fill(database_url: str, tasks: int, *, live: int = LIVE, with_events: bool = True) -> None:
    """The indexes are made afterwards: the result is the same, and it does not take all day."""
    connection = await asyncpg.connect(database_url)
    try:
        await connection.execute(SETTINGS)
        await connection.execute(PROMPTS)
        indexes = await connection.fetch(INDEXES)
        for index in indexes:
            await connection.execute(f"DROP INDEX {index['name']}")
        await connection.execute("ALTER TABLE task_events DROP CONSTRAINT task_events_pkey")
        room = await connection.fetchval(ROOM)
        await connection.execute("ALTER TABLE tasks RESET (fillfactor)")
        await connection.execute(FINISHED, tasks)
        if with_events:
            await connection.execute(EVENTS)
        await connection.execute(ALIVE, live)
        for statement in (TAGS, COUNTED, FIGURES, PROVIDERS):
            await connection.execute(statement)
        for index in indexes:
            await connection.execute(index["definition"])
        await connection.execute("ALTER TABLE task_events ADD PRIMARY KEY (task_id, seq)")
        if room:
            await connection.execute(f"ALTER TABLE tasks SET ({room})")
        for table in ("tasks", "task_events", "task_tags", "task_queue_metrics"):
            await connection.execute(f"VACUUM (ANALYZE) {table}")
    finally:
        await connection.close()
