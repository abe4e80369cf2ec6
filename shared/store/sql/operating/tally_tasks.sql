-- Notes that these tasks have come into the terminal states that they are in now. Appended, never updated: a counter
-- would be a queue for everybody. The janitor folds the tallies into `task_counts`. Of those that have ended, the ones
-- with unmet dependencies were blocked until then.

CREATE FUNCTION tally_tasks(ended uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
    SELECT e.user_id, e.provider, e.actor, change.status, change.tasks
    FROM (
        SELECT t.user_id, t.provider, t.actor, t.status, count(*) AS tasks,
               count(*) FILTER (WHERE t.unmet > 0) AS blocked
        FROM tasks t WHERE t.task_id = ANY (ended) GROUP BY t.user_id, t.provider, t.actor, t.status
    ) AS e
    CROSS JOIN LATERAL (VALUES (e.status, e.tasks), ('blocked', -e.blocked)) AS change(status, tasks)
    WHERE change.tasks <> 0;
END $$;

-- Puts right what the tallies say about the living, where somebody has moved a task without telling them. In one
-- snapshot rows and tallies differ by what went untold and by nothing else, whatever happens meanwhile. Two who did
-- this at once would put it right twice, so the lock is taken by an earlier statement. Returns how many were put right.

CREATE FUNCTION mend_tallies() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    mended bigint;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('windlass tallies'));
    WITH told AS (
        SELECT c.user_id, c.provider, c.actor, c.status, c.tasks FROM task_counts c WHERE c.user_id <> ''
        UNION ALL
        SELECT y.user_id, y.provider, coalesce(nullif(y.actor, ''), p.actor, ''), y.status, y.tasks
        FROM task_tallies y LEFT JOIN providers p ON p.name = y.provider
    ), difference AS (
        SELECT t.user_id, t.provider, t.actor, 'submitted' AS status, count(*) AS tasks
        FROM tasks t WHERE t.status IN :sources_of_cancel GROUP BY 1, 2, 3
        UNION ALL
        SELECT t.user_id, t.provider, t.actor, 'blocked', count(*) FROM tasks t WHERE t.status = 'blocked'
        GROUP BY 1, 2, 3
        UNION ALL
        SELECT o.user_id, o.provider, o.actor, CASE o.status WHEN 'blocked' THEN 'blocked' ELSE 'submitted' END,
               CASE WHEN o.status IN ('blocked', 'submitted') THEN -o.tasks ELSE o.tasks END FROM told o
    ), mend AS (
        INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
        SELECT d.user_id, d.provider, d.actor, d.status, sum(d.tasks) FROM difference d
        GROUP BY d.user_id, d.provider, d.actor, d.status HAVING sum(d.tasks) <> 0
        RETURNING tasks
    )
    SELECT coalesce(sum(abs(m.tasks)), 0) INTO mended FROM mend m;
    RETURN mended;
END $$;
