-- Marks the rows that the dispatcher is about to ring for. How many of each lane was decided from a look at the
-- provider; `seen_version` makes sure that nobody has reserved, paused it or changed the limit since, for only that
-- could make the decision too generous. Priority, then age, over all of these queues; one index probe per queue and
-- priority, so that tasks scheduled for later are never walked over. Tasks that only go on waiting for an open job come
-- first: they hold their slots. For a trial, one that was told 429 itself goes only if the first that are due all were.
-- Whose concurrency key is full is parked instead, and the dispatcher, woken by that, looks again.

CREATE FUNCTION reserve_tasks(
    provider_name text, seen_version int, resumes int, fresh int, retry int, credit int, trial boolean, token uuid,
    of_queues text[]
) RETURNS TABLE (task_id uuid, queue text, actor text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment   timestamptz;
    reserved uuid[];
    keyed    uuid[];
    crowded  uuid[];
    parked   boolean := false;
BEGIN
    UPDATE providers p SET dispatch_version = p.dispatch_version + 1, lane_credit = credit
    WHERE p.name = provider_name AND p.dispatch_version = seen_version;
    IF NOT FOUND THEN RETURN; END IF;
    moment := clock_timestamp();

    -- Where keys are full it chooses again, for others may go before them; but not for ever.
    FOR look IN 1..20 LOOP
        SELECT array_agg(chosen.task_id),
               array_agg(chosen.task_id) FILTER (WHERE chosen.concurrency_key IS NOT NULL)
        INTO reserved, keyed FROM (
            VALUES ('fresh', fresh), ('retry', retry)
        ) AS share(lane, places)
        CROSS JOIN LATERAL (
            SELECT due.task_id, due.concurrency_key
            FROM generate_series(0, 9) AS level(priority)
            CROSS JOIN unnest(of_queues) AS of(queue)
            CROSS JOIN LATERAL (
                SELECT t.task_id, t.available_at, t.concurrency_key, trial AND t.rate_limited_count > 0 AS doubtful
                FROM tasks t
                WHERE t.queue = of.queue AND t.lane = share.lane AND t.priority = level.priority
                  AND t.doorbell_token IS NULL AND NOT t.job_open AND :due_at(moment)
                ORDER BY t.available_at, t.task_id LIMIT CASE WHEN trial THEN 50 ELSE share.places END
            ) AS due
            ORDER BY due.doubtful, level.priority, due.available_at, due.task_id LIMIT share.places
        ) AS chosen
        WHERE share.places > 0;
        EXIT WHEN keyed IS NULL;
        crowded := beyond_room(keyed, true, moment);
        EXIT WHEN crowded IS NULL;
        reserved := ARRAY(SELECT one FROM unnest(reserved) AS one WHERE one <> ALL (crowded));
        EXIT WHEN cardinality(park_keys_of(crowded, moment)) = 0;
        parked := true;
    END LOOP;
    reserved := reserved || ARRAY(
        SELECT t.task_id
        FROM (SELECT * FROM tasks WHERE tasks.provider = provider_name AND tasks.job_open OFFSET 0) AS t
        WHERE t.doorbell_token IS NULL AND t.queue = ANY (of_queues) AND :due_at(moment)
        ORDER BY t.priority, t.available_at, t.task_id LIMIT resumes);
    IF coalesce(cardinality(reserved), 0) = 0 THEN RETURN; END IF;
    IF parked THEN -- tasks are locked already, by no order: nobody may be waited for
        reserved := ARRAY(SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (reserved) FOR NO KEY UPDATE SKIP LOCKED);
    ELSE
        PERFORM 1 FROM tasks t WHERE t.task_id = ANY (reserved) ORDER BY t.task_id FOR NO KEY UPDATE;
    END IF;

    RETURN QUERY
    WITH marked AS (
        UPDATE tasks t SET doorbell_token = token, doorbell_at = moment, doorbell_count = 1, last_seq = t.last_seq + 1
        -- Asked by the count: for `doorbell_token IS NULL` the planner may read the index of all that is due instead.
        WHERE t.task_id = ANY (reserved) AND t.status IN :sources_of_claim AND t.doorbell_count = 0
          AND t.held = '{}' -- it was chosen before it was locked: somebody may have held it meanwhile
        RETURNING t.task_id, t.queue, t.actor, t.last_seq, t.attempt, t.status, t.priority, t.available_at
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, 'dispatch', moment, m.attempt,
               jsonb_build_object('status', m.status, 'queue', m.queue)
        FROM marked m
    )
    SELECT m.task_id, m.queue::text, m.actor::text FROM marked m ORDER BY m.priority, m.available_at, m.task_id;
END $$;
