-- Counts the tasks of a page of workflows anew, those that live or have changed lately, and says how many differ from
-- what is written; the janitor sets them right, one by one, under the lock. There should be none: every move is told
-- in its own transaction. What is among the untold will be told, and is left alone.

CREATE FUNCTION drifted_workflows(since timestamptz, at_most int) RETURNS SETOF uuid LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT w.workflow_id FROM (
        (SELECT * FROM workflows w WHERE w.status = 'running' ORDER BY w.workflow_id DESC LIMIT at_most)
        UNION ALL
        (SELECT * FROM workflows w WHERE w.status = 'escalated' ORDER BY w.workflow_id DESC LIMIT at_most)
        UNION ALL
        (SELECT * FROM (SELECT * FROM workflows ORDER BY workflow_id DESC LIMIT at_most) AS w
         WHERE w.status NOT IN ('running', 'escalated') AND w.updated_at >= since)
    ) AS w
    CROSS JOIN LATERAL counted_anew(w.workflow_id) AS anew
    WHERE (w.live, w.completed, w.dead, w.cancelled) <> (anew.live, anew.completed, anew.dead, anew.cancelled)
      AND NOT EXISTS (
          SELECT 1 FROM untold u JOIN tasks t ON t.task_id = u.task_id
          WHERE u.subject = 'workflow' AND t.workflow_id = w.workflow_id::text);
END $$;

CREATE FUNCTION counted_anew(id uuid, OUT live int, OUT completed int, OUT dead int, OUT cancelled int)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT count(*) FILTER (WHERE is_live(item.status) = 1), count(*) FILTER (WHERE item.status = 'completed'),
           count(*) FILTER (WHERE item.status = 'dead'), count(*) FILTER (WHERE item.status = 'cancelled')
    INTO live, completed, dead, cancelled FROM (
        SELECT t.status FROM tasks t
        WHERE t.workflow_id = id::text AND t.concerns & :concern_of_workflow <> 0
          AND t.status IN ('blocked', 'queued', 'running', 'retrying')
        UNION ALL
        SELECT t.status FROM unnest(ARRAY['completed', 'dead', 'cancelled']) AS ended(status)
        CROSS JOIN LATERAL (
            SELECT tasks.status FROM tasks
            WHERE tasks.status = ended.status AND tasks.status IN ('completed', 'dead', 'cancelled')
              AND tasks.workflow_id = id::text AND tasks.concerns & :concern_of_workflow <> 0
        ) AS t
        UNION ALL
        SELECT n.status FROM workflow_nodes n WHERE n.workflow_id = id
    ) AS item;
END $$;

CREATE FUNCTION mend_workflow(id uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    before text;
    after  text;
BEGIN
    SELECT w.status INTO before FROM workflows w WHERE w.workflow_id = id FOR NO KEY UPDATE;
    UPDATE workflow_nodes n SET
        live = c.live, completed = c.completed, dead = c.dead, cancelled = c.cancelled
    FROM (
        SELECT node.node_id, count(t.status) FILTER (WHERE is_live(t.status) = 1) AS live,
               count(t.status) FILTER (WHERE t.status = 'completed') AS completed,
               count(t.status) FILTER (WHERE t.status = 'dead') AS dead,
               count(t.status) FILTER (WHERE t.status = 'cancelled') AS cancelled
        FROM workflow_nodes node CROSS JOIN LATERAL generate_series(0, node.children - 1) AS number
        LEFT JOIN tasks t ON t.workflow_id = id::text AND t.workflow_key = node.key || '[' || number || ']'
        WHERE node.workflow_id = id AND node.expanded_at IS NOT NULL GROUP BY node.node_id
    ) AS c WHERE n.node_id = c.node_id;
    UPDATE workflows w SET
        live = c.live, completed = c.completed, dead = c.dead, cancelled = c.cancelled,
        total = c.live + c.completed + c.dead + c.cancelled
    FROM counted_anew(id) AS c WHERE w.workflow_id = id
    RETURNING w.status INTO after;
    PERFORM note_workflows(ARRAY[id], ARRAY[before]) WHERE after <> before;
END $$;

-- After a restore: the numbers go beyond what anybody may have seen. The histories of those that go on say so.

CREATE FUNCTION restore_workflows(step int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE workflows w SET last_seq = w.last_seq + step;
    INSERT INTO workflow_events (workflow_id, seq, type, data)
    SELECT w.workflow_id, w.last_seq, 'restore', jsonb_build_object('status', w.status, 'was', w.status)
    FROM workflows w WHERE w.status IN ('running', 'escalated');
END $$;
