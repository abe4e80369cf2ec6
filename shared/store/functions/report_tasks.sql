-- Keeps what running attempts say: their latest progress, their output, their checkpoint. Only the owner is heard, and a
-- report that comes again because its answer was lost is known by its number and not written twice.

CREATE FUNCTION report_tasks(reports jsonb) RETURNS TABLE (task_id uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wanted uuid[];
    moment timestamptz;
    heard  uuid[];
BEGIN
    SELECT array_agg(r.task_id) INTO wanted FROM jsonb_to_recordset(reports) AS r(task_id uuid);
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();

    WITH report AS (
        SELECT * FROM jsonb_to_recordset(reports) AS r(
            task_id uuid, attempt int, claim_token uuid, number int, progress jsonb, checkpoint jsonb, events jsonb)
    ), moved AS (
        UPDATE tasks t SET
            progress = coalesce(r.progress, t.progress), checkpoint = coalesce(r.checkpoint, t.checkpoint),
            report_count = r.number, updated_at = moment, last_seq = t.last_seq + jsonb_array_length(r.events)
        FROM report r
        WHERE t.task_id = r.task_id AND t.status = 'running' AND t.attempt = r.attempt AND t.claim_token = r.claim_token
          AND t.report_count < r.number
        RETURNING t.task_id, t.attempt, t.last_seq, r.events
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq - jsonb_array_length(m.events) + line.ordinality, line.event ->> 'type', moment,
               m.attempt, line.event -> 'data'
        FROM moved m, jsonb_array_elements(m.events) WITH ORDINALITY AS line(event, ordinality)
    )
    SELECT array_agg(m.task_id) INTO heard FROM moved m;
    PERFORM wake_streams(heard) WHERE heard IS NOT NULL;
    RETURN QUERY SELECT unnest(heard);
END $$;
