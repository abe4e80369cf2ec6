-- Cancels a task: at once while it waits; while it runs its worker is asked, and the end is written when the work has
-- stopped. Asking twice changes nothing.

CREATE FUNCTION cancel_task(wanted uuid) RETURNS SETOF tasks LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
    moved  tasks;
BEGIN
    PERFORM 1 FROM tasks t WHERE t.task_id = wanted FOR NO KEY UPDATE;
    moment := clock_timestamp();

    UPDATE tasks t SET
        status = CASE t.status WHEN 'running' THEN t.status ELSE :target_of_cancel END,
        cancel_requested = true,
        completed_at = CASE t.status WHEN 'running' THEN NULL ELSE moment END,
        doorbell_token = NULL, doorbell_at = NULL, doorbell_count = 0,
        updated_at = moment, last_seq = t.last_seq + 1
    WHERE t.task_id = wanted AND t.status IN :sources_of_cancel AND NOT t.cancel_requested
    RETURNING t.* INTO moved;

    IF FOUND THEN
        INSERT INTO task_events (task_id, seq, type, at, attempt, data) VALUES (
            moved.task_id, moved.last_seq, CASE moved.status WHEN 'running' THEN 'cancel-requested' ELSE 'cancel' END,
            moment, moved.attempt, jsonb_build_object('status', moved.status));
        IF moved.status = 'running' THEN
            PERFORM pg_notify('windlass_cancel', moved.worker_id);
        ELSE
            PERFORM settle_dependents(ARRAY[wanted]);
        END IF;
        PERFORM wake_streams(ARRAY[wanted]), wake_dispatcher();
    END IF;
    RETURN QUERY SELECT * FROM tasks t WHERE t.task_id = wanted;
END $$;
