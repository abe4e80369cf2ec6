-- A person's word about a task that waits for it: approved it may start, rejected, or not answered in time, it is
-- cancelled. The task is locked first: of two that decide at once the second finds that it has been done.
-- Returns the task, and why nothing was decided, if so.

CREATE FUNCTION decide_task(wanted uuid, decision text, decider text, said text)
RETURNS TABLE (refusal text, ended jsonb, :columns_of_tasks) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    refused text;
    moves   jsonb;
    over    uuid[];
BEGIN
    PERFORM 1 FROM tasks t WHERE t.task_id = wanted FOR NO KEY UPDATE;
    SELECT CASE WHEN t.approval ->> 'decision' IS NOT NULL THEN 'already-decided'
                WHEN t.status <> 'blocked' OR t.asked_at IS NULL THEN 'not-waiting-for-approval' END
    INTO refused FROM tasks t WHERE t.task_id = wanted;
    IF refused IS NULL THEN
        WITH decided AS (
            UPDATE tasks t SET
                approval = t.approval || jsonb_strip_nulls(jsonb_build_object(
                    'decision', decision, 'decided_at', clock_timestamp(), 'decided_by', decider, 'comment', said)),
                updated_at = clock_timestamp(), last_seq = t.last_seq + 1
            WHERE t.task_id = wanted
            RETURNING t.task_id, t.last_seq, t.attempt, t.status, t.updated_at, t.life, t.actor, t.concerns,
                      CASE decision WHEN 'approved' THEN 'approve' ELSE 'reject' END AS via
        ), events AS (
            INSERT INTO task_events (task_id, seq, type, at, attempt, data)
            SELECT d.task_id, d.last_seq, d.via, d.updated_at,
                   d.attempt, jsonb_strip_nulls(jsonb_build_object(
                       'status', d.status, 'decision', decision, 'decided_by', decider, 'comment', said))
            FROM decided d
        )
        SELECT jsonb_agg(move_of(d.task_id, d.last_seq, d.life, d.told, d.via, d.status, d.updated_at))
        INTO moves FROM (SELECT decided.*, :all_concerns_of(decided) AS told FROM decided) AS d
        WHERE d.told & :outbox_bits <> 0;
        IF moves IS NOT NULL THEN
            PERFORM write_outbox(moves);
        END IF;
        IF decision = 'approved' THEN
            PERFORM settle_children(ARRAY[wanted]);
        ELSE
            SELECT c.ended INTO over FROM cancel_tasks(ARRAY[wanted]) AS c;
        END IF;
    END IF;
    RETURN QUERY SELECT refused, counts_of(over), :each_of_tasks(t) FROM tasks t WHERE t.task_id = wanted;
END $$;

-- Those that nobody has answered in time, each in a call of its own; null when there is none.

CREATE FUNCTION expire_approval(after uuid, OUT task_id uuid, OUT ended jsonb) LANGUAGE plpgsql AS $$
BEGIN
    SELECT t.task_id INTO task_id FROM tasks t
    WHERE t.status = 'blocked' AND t.asked_at IS NOT NULL AND t.ask_expires_at IS NOT NULL
      AND t.ask_expires_at <= clock_timestamp() AND t.task_id <> after
    ORDER BY t.ask_expires_at LIMIT 1;
    IF task_id IS NOT NULL THEN
        SELECT d.ended INTO ended FROM decide_task(task_id, 'expired', NULL, NULL) AS d;
    END IF;
END $$;
