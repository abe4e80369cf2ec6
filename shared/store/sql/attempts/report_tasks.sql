-- Keeps what running attempts say: their latest progress, their output, their checkpoint, and what they have cost since
-- the report before, so that it is known although their worker dies. Only the owner is heard, and a report that comes
-- again because its answer was lost is known by its number and not written twice. Who offers again what is `skipped`
-- may leave out the rows that somebody else has locked, so that nobody waits for those; workers of earlier releases do
-- not ask for that, and wait.

CREATE FUNCTION report_tasks(reports jsonb, skip_locked boolean DEFAULT false)
RETURNS TABLE (task_id uuid, skipped boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wanted uuid[];
    moment timestamptz;
    heard  uuid[];
BEGIN
    SELECT array_agg(r.task_id) INTO wanted FROM jsonb_to_recordset(reports) AS r(task_id uuid);
    IF skip_locked THEN
        SELECT array_agg(free.task_id) INTO wanted FROM (
            SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (wanted) FOR NO KEY UPDATE SKIP LOCKED
        ) AS free;
    ELSE
        PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted) ORDER BY t.task_id FOR NO KEY UPDATE;
    END IF;
    moment := clock_timestamp();

    WITH report AS (
        SELECT r.* FROM jsonb_to_recordset(reports) AS r(
            task_id uuid, attempt int, claim_token uuid, number int, progress jsonb, checkpoint jsonb, events jsonb,
            usage jsonb)
        -- One by one (OFFSET 0 keeps the conditions out): a plan made while few tasks ran would read all that run.
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = r.task_id OFFSET 0) AS t
        WHERE t.status = 'running' AND t.attempt = r.attempt AND t.claim_token = r.claim_token
          AND t.report_count < r.number
    ), moved AS (
        UPDATE tasks t SET
            progress = coalesce(r.progress, t.progress), checkpoint = coalesce(r.checkpoint, t.checkpoint),
            usage = CASE WHEN r.usage IS NULL THEN t.usage ELSE added_usage(t.usage, r.usage) END,
            report_count = r.number, updated_at = moment, last_seq = t.last_seq + jsonb_array_length(r.events)
        FROM report r
        WHERE t.task_id = r.task_id AND t.task_id = ANY (wanted)
        RETURNING t.task_id, t.attempt, t.last_seq, r.events
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq - jsonb_array_length(m.events) + line.ordinality, line.event ->> 'type', moment,
               m.attempt, line.event -> 'data'
        FROM moved m, jsonb_array_elements(m.events) WITH ORDINALITY AS line(event, ordinality)
    )
    SELECT array_agg(m.task_id) INTO heard FROM moved m;
    PERFORM wake_streams(heard) WHERE heard IS NOT NULL;
    RETURN QUERY SELECT unnest(heard), false;

    IF skip_locked AND coalesce(cardinality(heard), 0) < jsonb_array_length(reports) THEN
        -- What is still its reporter's and was not written is locked: written, it would have counted the report.
        RETURN QUERY
        SELECT r.task_id, true
        FROM jsonb_to_recordset(reports) AS r(task_id uuid, attempt int, claim_token uuid, number int)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = r.task_id OFFSET 0) AS t
        WHERE t.status = 'running' AND t.attempt = r.attempt AND t.claim_token = r.claim_token
          AND t.report_count < r.number;
    END IF;
END $$;
