-- How many places each queue could use: its running tasks, and those that could start if a worker were there.
-- Autoscalers read it through the view `scale_demand`. A queue may want all the places that its provider has free,
-- whatever waits in the other queues: which of them a worker will serve is for the pools to say, and a pool that
-- wanted nothing until its turn came would begin too late. No queue counts more than 10,000 waiting tasks: no pool
-- grows that large.
--
-- Each index is read in its own order, and a count without an order has no limit: a limit alone makes the planner
-- walk through all tasks that live.

CREATE FUNCTION demand() RETURNS TABLE (queue text, wanted bigint)
LANGUAGE plpgsql STABLE SET jit = off SET enable_sort = off SET enable_seqscan = off AS $$
BEGIN
    RETURN QUERY
    SELECT q.queue::text, running.tasks + CASE
        WHEN is_on_trial(p) THEN least(1, may.starts + may.resumes) ELSE may.starts + may.resumes END
    FROM queues q JOIN providers p ON p.name = q.provider
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks FROM tasks t
        WHERE t.provider = p.name AND t.queue = q.queue AND t.status = 'running'
    ) AS running
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks FROM tasks t
        WHERE t.provider = p.name AND t.queue = q.queue AND t.job_open AND :due_at(now())
    ) AS resuming
    CROSS JOIN LATERAL (
        -- Of each concurrency key no more than it has room for. A parked task is held, and counts nowhere.
        SELECT coalesce(sum(of_key.tasks), 0)::bigint AS tasks,
               coalesce(sum(least(of_key.tasks, key_room(p.name, q.actor, of_key.key))), 0)::bigint AS startable
        FROM (
            SELECT one.key, count(*) AS tasks FROM (
                SELECT t.concurrency_key AS key FROM tasks t
                WHERE t.provider = q.provider AND t.actor = q.actor AND t.concurrency_key IS NOT NULL AND t.held = '{}'
                  AND NOT t.job_open AND :due_at(now())
                ORDER BY t.concurrency_key LIMIT 10000
            ) AS one GROUP BY one.key
        ) AS of_key
    ) AS keyed
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks FROM (
            SELECT counted.key FROM (VALUES ('fresh'), ('retry')) AS of(lane)
            CROSS JOIN generate_series(0, 9) AS level(priority)
            CROSS JOIN LATERAL (
                SELECT t.concurrency_key AS key FROM tasks t
                WHERE t.queue = q.queue AND t.lane = of.lane AND t.priority = level.priority
                  AND NOT t.job_open AND :due_at(now())
                -- Tasks with a key stand among the others, and are passed over.
                ORDER BY t.available_at LIMIT CASE WHEN keyed.tasks > 0 THEN 10000
                    ELSE least(coalesce(p.limit_override, p.configured_limit), 10000) END
            ) AS counted
            LIMIT 10000
        ) AS counted WHERE counted.key IS NULL
    ) AS plain
    CROSS JOIN LATERAL startable(p, plain.tasks + keyed.startable, resuming.tasks, now()) AS may;
END $$;
