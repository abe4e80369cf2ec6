-- Writes into the history of a task what an attempt was told of the past before it began. Refused to an attempt that no
-- longer owns its task; repeated, it is there once.

CREATE FUNCTION note_recall(fence jsonb, recalled jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    owner  uuid := (fence ->> 'task_id')::uuid;
    moment timestamptz;
BEGIN
    IF NOT owns_task(fence) THEN RETURN false; END IF;
    moment := clock_timestamp();
    IF EXISTS (
        SELECT 1 FROM task_events e
        WHERE e.task_id = owner AND e.type = 'recall' AND e.attempt = (fence ->> 'attempt')::int)
    THEN
        RETURN true;
    END IF;
    WITH moved AS (
        UPDATE tasks t SET last_seq = t.last_seq + 1, updated_at = moment
        WHERE t.task_id = owner
        RETURNING t.task_id, t.last_seq, t.attempt
    )
    INSERT INTO task_events (task_id, seq, type, at, attempt, data)
    SELECT m.task_id, m.last_seq, 'recall', moment, m.attempt, recalled FROM moved m;
    PERFORM wake_streams(ARRAY[owner]);
    RETURN true;
END $$;
