-- Locks a workflow, then counts its tasks and reads its nodes and failures. One call, because these statements must
-- come after the lock. Returns nothing if there is no such workflow.

CREATE FUNCTION lock_workflow(wanted uuid) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    noded boolean;
BEGIN
    SELECT w.has_nodes INTO noded FROM workflows w WHERE w.workflow_id = wanted FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN NULL; END IF;
    RETURN (
        SELECT jsonb_build_object(
            'now', clock_timestamp(),
            'workflow', to_jsonb(w) - 'tags',
            'failures', (SELECT count(*) FROM group_failures f WHERE f.group_id = wanted),
            'tasks', (
                SELECT coalesce(jsonb_agg(jsonb_build_object(
                    'node', c.node, 'status', c.status, 'tasks', c.tasks, 'to_cancel', c.to_cancel,
                    'to_hold', c.to_hold, 'to_release', c.to_release)), '[]')
                FROM tasks_of_workflow(wanted, noded) AS c),
            'nodes', CASE WHEN noded THEN (
                SELECT coalesce(jsonb_agg(jsonb_build_object(
                    'node_id', n.node_id, 'key', b.key, 'status', b.status, 'members', b.members, 'path', b.path,
                    'source', b.source, 'source_status', CASE WHEN b.source_is_barrier
                        THEN (SELECT s.status FROM barriers s WHERE s.barrier_id = b.source)
                        ELSE (SELECT t.status FROM tasks t WHERE t.task_id = b.source) END,
                    'error_type', n.error ->> 'type', 'actor', n.template ->> 'actor',
                    'provider', n.template ->> 'provider')), '[]')
                FROM workflow_nodes n JOIN barriers b ON b.barrier_id = n.node_id WHERE n.workflow_id = wanted)
                ELSE '[]' END)
        FROM workflows w WHERE w.workflow_id = wanted);
END $$;

-- How many tasks of a workflow have which status, by node; and how many of them an escalation has to hold, its end to
-- release, and a cancel to cancel. Live and ended tasks have indexes of their own. A plan that is kept from an empty
-- table may use others and read all tasks, so each call plans its statement.

CREATE FUNCTION tasks_of_workflow(wanted uuid, has_nodes boolean)
RETURNS TABLE (node text, status text, tasks int, to_cancel int, to_hold int, to_release int)
LANGUAGE plpgsql STABLE SET plan_cache_mode = force_custom_plan AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT c.node, c.status, count(*)::int, count(*) FILTER (WHERE c.is_live AND NOT c.cancel_requested)::int,
           count(*) FILTER (WHERE c.is_live AND c.status <> 'running' AND NOT c.job_open AND NOT c.is_held)::int,
           count(*) FILTER (WHERE c.is_live AND c.is_held)::int
    FROM (
        SELECT CASE WHEN has_nodes THEN key_of_barrier(t.workflow_key) END AS node, t.status::text, true AS is_live,
               t.cancel_requested, t.job_open, 'workflow' = ANY (t.held) AS is_held
        FROM tasks t
        WHERE t.workflow_id = wanted::text AND t.group_id = wanted
          AND t.status IN ('blocked', 'queued', 'running', 'retrying')
        UNION ALL
        SELECT CASE WHEN has_nodes THEN key_of_barrier(t.workflow_key) END, t.status::text, false, false, false, false
        FROM unnest(ARRAY['completed', 'dead', 'cancelled']) AS ended(status)
        CROSS JOIN LATERAL (
            SELECT tasks.status, tasks.workflow_key FROM tasks
            WHERE tasks.status = ended.status AND tasks.status IN ('completed', 'dead', 'cancelled')
              AND tasks.workflow_id = wanted::text AND tasks.group_id = wanted
            OFFSET 0 -- one status after the other: joined at once, the planner may read all that ever ended
        ) AS t
    ) AS c
    GROUP BY c.node, c.status;
END $$;
