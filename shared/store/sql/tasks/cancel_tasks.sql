-- Cancels tasks: at once while they wait; while they run their workers are asked, and the end is written when the work
-- has stopped. Asking twice changes nothing. Returns the tasks that it changed, and those that have ended by it: of the
-- wanted, and of those that depend on them. Whoever cancels for a reason of its own has it kept with the event. A
-- feature that has no more use for its tasks gives up their subscriptions (`frees`) and gets no row about this end.

CREATE FUNCTION cancel_tasks(
    wanted uuid[], because text DEFAULT NULL, frees int DEFAULT 0, OUT changed uuid[], OUT ended uuid[]
) LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz;
    holders text[];
    moves   jsonb;
BEGIN
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();

    WITH moved AS (
        UPDATE tasks t SET
            status = CASE t.status WHEN 'running' THEN t.status ELSE :target_of_cancel END,
            cancel_requested = true, concerns = t.concerns & ~frees,
            completed_at = CASE t.status WHEN 'running' THEN NULL ELSE moment END,
            held = '{}', held_at = NULL, due_at = NULL, available_at = coalesce(t.due_at, t.available_at),
            updated_at = moment, last_seq = t.last_seq + 1
        WHERE t.task_id = ANY (wanted) AND t.status IN :sources_of_cancel AND NOT t.cancel_requested
        RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.worker_id, t.life, t.actor, t.concerns
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, CASE m.status WHEN 'running' THEN 'cancel-requested' ELSE 'cancel' END, moment,
               m.attempt, jsonb_strip_nulls(jsonb_build_object('status', m.status, 'reason', because))
        FROM moved m
    )
    SELECT array_agg(m.task_id), array_agg(m.task_id) FILTER (WHERE m.status <> 'running'),
           array_agg(DISTINCT m.worker_id) FILTER (WHERE m.status = 'running'),
           jsonb_agg(move_of(m.task_id, m.last_seq, m.life, m.told, 'cancel', m.status, moment))
           FILTER (WHERE m.status <> 'running' AND m.told <> 0)
    INTO changed, ended, holders, moves FROM (SELECT moved.*, :all_concerns_of(moved) AS told FROM moved) AS m;

    PERFORM pg_notify('windlass_cancel', holder) FROM unnest(holders) AS holder;
    IF ended IS NOT NULL THEN
        PERFORM tally_tasks(ended);
        ended := ended || settle_dependents(ended, wanted);
        IF moves IS NOT NULL THEN
            PERFORM write_moves(moves);
        END IF;
    END IF;
    PERFORM wake_streams(changed), wake_dispatcher(providers_of(changed)) WHERE changed IS NOT NULL;
    changed := coalesce(changed, '{}');
END $$;

CREATE FUNCTION cancel_task(wanted uuid) RETURNS TABLE (:columns_of_tasks, ended jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    over uuid[];
BEGIN
    SELECT cancelled.ended INTO over FROM cancel_tasks(ARRAY[wanted]) AS cancelled;
    RETURN QUERY SELECT :each_of_tasks(t), counts_of(over) FROM tasks t WHERE t.task_id = wanted;
END $$;
