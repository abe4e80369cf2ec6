-- Makes waiting tasks stand still for a reason. While there is one, nobody may start them: `available_at` is infinity,
-- which every index and every rule obeys, and their own time waits in `due_at`. One whose job at the provider is open
-- is left alone: it keeps a slot, and would keep it from everybody. Returns those that it changed; whoever is held for
-- that reason already is not among them.

CREATE FUNCTION hold_tasks(wanted uuid[], reason text) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz;
    changed uuid[];
    keyed   uuid[];
BEGIN
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();

    WITH moved AS (
        UPDATE tasks t SET
            held = t.held || reason, held_at = coalesce(t.held_at, moment),
            due_at = coalesce(t.due_at, t.available_at), available_at = 'infinity',
            updated_at = moment, last_seq = t.last_seq + 1
        WHERE t.task_id = ANY (wanted) AND t.status IN ('blocked', 'queued', 'retrying') AND NOT t.job_open
          AND reason <> ALL (t.held)
        RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.held, t.concurrency_key
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, 'hold', moment, m.attempt,
               jsonb_build_object('status', m.status, 'reason', reason, 'held', m.held)
        FROM moved m
    )
    SELECT array_agg(m.task_id), array_agg(m.task_id) FILTER (WHERE m.concurrency_key IS NOT NULL)
    INTO changed, keyed FROM moved m;

    -- Others may go instead.
    PERFORM wake_streams(changed), wake_dispatcher(providers_of(changed)) WHERE changed IS NOT NULL;
    IF keyed IS NOT NULL AND reason <> 'key' THEN -- the next of its key may go instead
        PERFORM release_keys_of(keyed);
    END IF;
    RETURN coalesce(changed, '{}');
END $$;

-- Takes a reason back. With the last one a task gets its own time back, and as much more time to start in as it stood
-- still. Returns those that it changed.

CREATE FUNCTION release_tasks(wanted uuid[], reason text) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz;
    changed uuid[];
    keyed   uuid[];
BEGIN
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();

    WITH releasing AS (
        SELECT t.task_id, array_remove(t.held, reason) AS remaining
        FROM unnest(wanted) AS one(task_id)
        -- One by one (OFFSET 0 keeps the conditions out): a plan made while few tasks waited would read all that wait.
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        WHERE reason = ANY (t.held)
    ), moved AS (
        UPDATE tasks t SET
            held = r.remaining,
            held_at = CASE WHEN r.remaining <> '{}' THEN t.held_at END,
            due_at = CASE WHEN r.remaining <> '{}' THEN t.due_at END,
            available_at = CASE WHEN r.remaining <> '{}' THEN t.available_at ELSE t.due_at END,
            expires_at = CASE WHEN r.remaining <> '{}' THEN t.expires_at ELSE t.expires_at + (moment - t.held_at) END,
            updated_at = moment, last_seq = t.last_seq + 1
        FROM releasing r WHERE t.task_id = r.task_id
        RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.held, t.concurrency_key
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, 'release', moment, m.attempt,
               jsonb_build_object('status', m.status, 'reason', reason, 'held', m.held)
        FROM moved m
    )
    SELECT array_agg(m.task_id), array_agg(m.task_id) FILTER (WHERE m.concurrency_key IS NOT NULL)
    INTO changed, keyed FROM moved m;

    PERFORM wake_streams(changed), wake_dispatcher(providers_of(changed)) WHERE changed IS NOT NULL;
    IF keyed IS NOT NULL AND reason <> 'key' THEN -- what is parked still may go on now
        PERFORM release_keys_of(keyed);
    END IF;
    RETURN coalesce(changed, '{}');
END $$;
