-- Keeps what a step of an attempt came to, together with its event: a later attempt is given it instead of doing the
-- step again. Refused to an attempt that no longer owns its task. Repeating the call answers as the first time did.

CREATE FUNCTION save_step(fence jsonb, step_name text, step_result jsonb, step_elapsed_ms bigint)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    owner  uuid := (fence ->> 'task_id')::uuid;
    moment timestamptz;
BEGIN
    IF NOT owns_task(fence) THEN RETURN false; END IF;
    moment := clock_timestamp();
    INSERT INTO task_steps (task_id, name, attempt, result, elapsed_ms, created_at)
    VALUES (owner, step_name, (fence ->> 'attempt')::int, step_result, step_elapsed_ms, moment)
    ON CONFLICT (task_id, name) DO NOTHING;
    IF NOT FOUND THEN RETURN true; END IF;
    WITH moved AS (
        UPDATE tasks t SET last_seq = t.last_seq + 1, updated_at = moment
        WHERE t.task_id = owner
        RETURNING t.task_id, t.last_seq, t.attempt
    )
    INSERT INTO task_events (task_id, seq, type, at, attempt, data)
    SELECT m.task_id, m.last_seq, 'step', moment, m.attempt,
           jsonb_build_object('name', step_name, 'attempt', m.attempt, 'elapsed_ms', step_elapsed_ms)
    FROM moved m;
    PERFORM wake_streams(ARRAY[owner]);
    RETURN true;
END $$;
