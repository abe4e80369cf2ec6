-- Gives dead or cancelled tasks a new life, and with them the dependents that their ends had buried: a page of them at
-- once, the rest is left to the janitor. Returns those of the wanted that it changed, all that it revived, and of these
-- the ones that it had to bury again.

CREATE FUNCTION revive_tasks(wanted uuid[], OUT changed uuid[], OUT everybody uuid[], OUT ended uuid[])
LANGUAGE plpgsql AS $$
DECLARE
    generation uuid[] := wanted;
    room       int := dependents_at_once();
    parents    uuid[];
    moment     timestamptz;
    revived    uuid[];
BEGIN
    everybody := '{}';
    WHILE generation IS NOT NULL LOOP
        -- Parents before children, as everywhere: a parent that completes meanwhile is counted once it is locked.
        SELECT array_agg(d.parent_id) INTO parents FROM task_dependencies d WHERE d.child_id = ANY (generation);
        PERFORM 1 FROM tasks t WHERE t.task_id = ANY (parents || generation) ORDER BY t.task_id FOR NO KEY UPDATE;
        moment := clock_timestamp();

        WITH counted AS (
            SELECT t.task_id, t.status AS was, (
                SELECT count(*) FROM task_dependencies d
                CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = d.parent_id OFFSET 0) AS p
                WHERE d.child_id = t.task_id AND p.status <> 'completed'
            ) AS unmet
            FROM unnest(generation) AS one(task_id)
            CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
            WHERE t.status IN :sources_of_revive
        ), moved AS (
            UPDATE tasks t SET
                status = CASE c.unmet WHEN 0 THEN 'queued' ELSE 'blocked' END, unmet = c.unmet, lane = 'retry',
                retry_count = 0, interrupt_count = 0, stall_count = 0, suspicion = 0, rate_limited_count = 0,
                error = NULL,
                exit_code = NULL, progress = NULL,
                provider_job_id = CASE WHEN t.job_open THEN t.provider_job_id END, cancel_requested = false,
                completed_at = NULL, claim_token = NULL,
                available_at = moment, expires_at = moment + make_interval(secs => t.max_age_seconds),
                updated_at = moment, last_seq = t.last_seq + 1
            FROM counted c WHERE t.task_id = c.task_id
            RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.user_id, t.provider, t.actor, c.was
        ), events AS (
            INSERT INTO task_events (task_id, seq, type, at, attempt, data)
            SELECT m.task_id, m.last_seq, 'revive', moment, m.attempt, jsonb_build_object('status', m.status)
            FROM moved m
        ), tallies AS (
            INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
            SELECT m.user_id, m.provider, m.actor, m.was, -count(*) FROM moved m
            GROUP BY m.user_id, m.provider, m.actor, m.was
            UNION ALL
            SELECT m.user_id, m.provider, m.actor, m.status, count(*) FROM moved m WHERE m.status = 'blocked'
            GROUP BY m.user_id, m.provider, m.actor, m.status
        )
        SELECT array_agg(m.task_id) INTO revived FROM moved m;

        PERFORM wake_streams(revived), wake_dispatcher() WHERE revived IS NOT NULL;
        everybody := everybody || revived;
        generation := dependents_of(revived, true, room);
        room := room - coalesce(cardinality(generation), 0);
        generation := buried_by_parents(generation);
    END LOOP;
    -- What has another parent that is still dead is buried again, with that one named as the reason.
    ended := settle_children(everybody);
    ended := ended || settle_dependents(ended);
    changed := ARRAY(SELECT each FROM unnest(everybody) AS each WHERE each = ANY (wanted));
END $$;

-- Those that are dead because a parent failed.

CREATE FUNCTION buried_by_parents(children uuid[]) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT array_agg(t.task_id) FROM unnest(children) AS child(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = child.task_id OFFSET 0) AS t
        WHERE t.status = 'dead' AND t.error ->> 'type' = 'DependencyFailed');
END $$;

CREATE FUNCTION revive_task(wanted uuid) RETURNS TABLE (task tasks, revived jsonb, ended jsonb) LANGUAGE plpgsql AS $$
DECLARE
    back uuid[];
    over uuid[];
BEGIN
    SELECT r.everybody, r.ended INTO back, over FROM revive_tasks(ARRAY[wanted]) AS r;
    RETURN QUERY SELECT t, counts_of(back), counts_of(over) FROM tasks t WHERE t.task_id = wanted;
END $$;
