-- Cancels tasks: at once while they wait; while they run their workers are asked, and the end is written when the work
-- has stopped. Asking twice changes nothing. Returns the tasks that it changed, and those that have ended by it: of the
-- wanted, and of those that depend on them.

CREATE FUNCTION cancel_tasks(wanted uuid[], OUT changed uuid[], OUT ended uuid[]) LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz;
    holders text[];
BEGIN
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();

    WITH moved AS (
        UPDATE tasks t SET
            status = CASE t.status WHEN 'running' THEN t.status ELSE :target_of_cancel END,
            cancel_requested = true,
            completed_at = CASE t.status WHEN 'running' THEN NULL ELSE moment END,
            doorbell_token = NULL, doorbell_at = NULL, doorbell_count = 0,
            updated_at = moment, last_seq = t.last_seq + 1
        WHERE t.task_id = ANY (wanted) AND t.status IN :sources_of_cancel AND NOT t.cancel_requested
        RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.worker_id
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, CASE m.status WHEN 'running' THEN 'cancel-requested' ELSE 'cancel' END, moment,
               m.attempt, jsonb_build_object('status', m.status)
        FROM moved m
    )
    SELECT array_agg(m.task_id), array_agg(m.task_id) FILTER (WHERE m.status <> 'running'),
           array_agg(DISTINCT m.worker_id) FILTER (WHERE m.status = 'running')
    INTO changed, ended, holders FROM moved m;

    PERFORM pg_notify('windlass_cancel', holder) FROM unnest(holders) AS holder;
    IF ended IS NOT NULL THEN
        PERFORM tally_tasks(ended);
        ended := ended || settle_dependents(ended, wanted);
    END IF;
    PERFORM wake_streams(changed), wake_dispatcher() WHERE changed IS NOT NULL;
    changed := coalesce(changed, '{}');
END $$;

CREATE FUNCTION cancel_task(wanted uuid) RETURNS TABLE (task tasks, ended jsonb) LANGUAGE plpgsql AS $$
DECLARE
    over uuid[];
BEGIN
    SELECT cancelled.ended INTO over FROM cancel_tasks(ARRAY[wanted]) AS cancelled;
    RETURN QUERY SELECT t, counts_of(over) FROM tasks t WHERE t.task_id = wanted;
END $$;
