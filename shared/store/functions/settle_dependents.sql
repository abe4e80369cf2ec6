-- Tells the children of ended tasks: the last parent completed unblocks them, one that failed buries them, and what it
-- buries is told on. Returns all that it buried.

CREATE FUNCTION settle_dependents(ended uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    children uuid[];
    buried   uuid[] := '{}';
BEGIN
    LOOP
        SELECT array_agg(DISTINCT d.child_id) INTO children FROM task_dependencies d WHERE d.parent_id = ANY (ended);
        EXIT WHEN children IS NULL;
        ended := settle_children(children);
        EXIT WHEN ended IS NULL;
        buried := buried || ended;
    END LOOP;
    RETURN buried;
END $$;

-- Moves blocked tasks by what has become of their parents, and returns those that it buried. Each child is locked, then
-- its parents are counted anew by a later statement, so of two parents that complete together the second sees both.

CREATE FUNCTION settle_children(children uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz;
    settled uuid[];
    buried  uuid[];
BEGIN
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (children) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();

    WITH child AS (
        SELECT t.task_id,
               (SELECT count(*) FROM task_dependencies d JOIN tasks p ON p.task_id = d.parent_id
                WHERE d.child_id = t.task_id AND p.status <> 'completed') AS unmet,
               (SELECT p.task_id FROM task_dependencies d JOIN tasks p ON p.task_id = d.parent_id
                WHERE d.child_id = t.task_id AND p.status IN ('dead', 'cancelled')
                ORDER BY p.task_id LIMIT 1) AS failed_parent
        FROM tasks t WHERE t.task_id = ANY (children) AND t.status IN :sources_of_unblock
    ), moved AS (
        UPDATE tasks t SET
            status = CASE WHEN c.failed_parent IS NOT NULL THEN :target_of_bury
                          WHEN c.unmet = 0 THEN :target_of_unblock ELSE t.status END,
            unmet = c.unmet,
            error = CASE WHEN c.failed_parent IS NULL THEN t.error ELSE jsonb_build_object(
                'type', 'DependencyFailed', 'kind', 'permanent',
                'message', 'task ' || c.failed_parent || ', which this one depends on, died or was cancelled',
                'details', jsonb_build_object('task_id', c.failed_parent), 'stack_trace', NULL,
                'attempt', t.attempt) END,
            completed_at = CASE WHEN c.failed_parent IS NOT NULL THEN moment END,
            updated_at = moment,
            last_seq = t.last_seq + (c.failed_parent IS NOT NULL OR c.unmet = 0)::int
        FROM child c
        WHERE t.task_id = c.task_id AND (c.failed_parent IS NOT NULL OR c.unmet <> t.unmet OR c.unmet = 0)
        RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.error
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, CASE m.status WHEN 'dead' THEN 'bury' ELSE 'unblock' END, moment, m.attempt,
               jsonb_build_object('status', m.status)
               || CASE m.status WHEN 'dead' THEN jsonb_build_object('error', m.error) ELSE '{}' END
        FROM moved m WHERE m.status <> 'blocked'
    )
    SELECT array_agg(m.task_id), array_agg(m.task_id) FILTER (WHERE m.status = 'dead') INTO settled, buried
    FROM moved m WHERE m.status <> 'blocked';

    PERFORM tally_tasks(buried) WHERE buried IS NOT NULL;
    PERFORM wake_streams(settled), wake_dispatcher() WHERE settled IS NOT NULL;
    RETURN buried;
END $$;
