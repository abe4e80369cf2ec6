-- Buries the waiting tasks that are too old to start. Locked rows are skipped. Held tasks do not grow older, nor do
-- tasks of a stopped group, which are about to be held. Returns also the dependents that were buried with them.

CREATE FUNCTION expire_tasks(at_most int)
RETURNS TABLE (task_id uuid, actor text, provider text, is_dependent boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    stale  uuid[];
    buried uuid[];
    moment timestamptz;
    moves  jsonb;
BEGIN
    stale := first_expired(at_most);
    IF stale IS NULL THEN RETURN; END IF;
    -- Chosen unlocked, then locked and looked at again.
    SELECT array_agg(t.task_id) INTO stale FROM unnest(stale) AS one(task_id)
    CROSS JOIN LATERAL (
        SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0 FOR NO KEY UPDATE SKIP LOCKED
    ) AS t
    WHERE t.status IN ('blocked', 'queued', 'retrying') AND t.expires_at <= clock_timestamp()
      AND t.available_at < 'infinity' AND (t.group_id IS NULL OR NOT :is_stopped(t));
    IF stale IS NULL THEN RETURN; END IF;
    moment := clock_timestamp();

    WITH moved AS (
        UPDATE tasks t SET
            status = :target_of_bury, completed_at = moment, updated_at = moment, last_seq = t.last_seq + 1,
            error = jsonb_build_object(
                'type', 'Expired', 'kind', 'permanent', 'stack_trace', NULL, 'attempt', t.attempt,
                'message', 'not started within its ' || t.max_age_seconds || ' s',
                'details', jsonb_strip_nulls(jsonb_build_object('last_error', t.error ->> 'message')))
        WHERE t.task_id = ANY (stale) AND t.status IN :sources_of_bury
        RETURNING t.task_id, t.last_seq, t.attempt, t.status, t.error, t.life, t.actor, t.concerns
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, 'bury', moment, m.attempt,
               jsonb_build_object('status', m.status, 'error', m.error)
        FROM moved m
    )
    SELECT jsonb_agg(move_of(m.task_id, m.last_seq, m.life, m.told, 'bury', m.status, moment))
           FILTER (WHERE m.told <> 0)
    INTO moves FROM (SELECT moved.*, :all_concerns_of(moved) AS told FROM moved) AS m;

    PERFORM tally_tasks(stale);
    buried := settle_dependents(stale, stale);
    IF moves IS NOT NULL THEN
        PERFORM write_moves(moves);
    END IF;
    PERFORM wake_streams(stale), wake_dispatcher(providers_of(stale));
    RETURN QUERY SELECT t.task_id, t.actor::text, t.provider::text, t.task_id = ANY (buried)
    FROM tasks t WHERE t.task_id = ANY (stale || buried);
END $$;

-- Those that expired first. Nothing may be sorted here, as in `due_counts`: asked in any other order than that of its
-- index, the planner walks through all that live. In a function of its own, for what is set holds in those it calls.

CREATE FUNCTION first_expired(at_most int) RETURNS uuid[] LANGUAGE plpgsql SET enable_sort = off AS $$
BEGIN
    RETURN (
        SELECT array_agg(expired.task_id) FROM (
            SELECT t.task_id FROM tasks t
            WHERE t.status IN ('blocked', 'queued', 'retrying') AND t.expires_at IS NOT NULL AND t.expires_at <= now()
              AND t.available_at < 'infinity' AND (t.group_id IS NULL OR NOT :is_stopped(t))
            ORDER BY t.expires_at LIMIT at_most
        ) AS expired);
END $$;
