-- Stores a workflow with all its tasks, or nothing; a repeat under its idempotency key returns the first one. The nodes
-- of a workflow are counted as live from the start.

CREATE FUNCTION submit_workflow(workflow jsonb, nodes jsonb, submissions jsonb)
RETURNS TABLE (refusal text, missing text, workflow_id uuid, is_new boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    id      uuid := (workflow ->> 'workflow_id')::uuid;
    earlier jsonb;
BEGIN
    BEGIN
        earlier := owners_of_keys(jsonb_build_array(workflow || jsonb_build_object('task_id', id)), 'idempotency');
        IF earlier ? id::text THEN
            RETURN QUERY SELECT NULL::text, NULL::text, (earlier ->> id::text)::uuid, false;
            RETURN;
        END IF;
        PERFORM store_workflow(id, workflow, nodes, submissions);
    EXCEPTION WHEN SQLSTATE 'WL404' OR SQLSTATE 'WL409' OR SQLSTATE 'WL422' THEN
        GET STACKED DIAGNOSTICS refusal = MESSAGE_TEXT, missing = PG_EXCEPTION_DETAIL;
        RETURN NEXT;
        RETURN;
    END;
    RETURN QUERY SELECT NULL::text, NULL::text, id, true;
END $$;

-- The list of a node may be there already, so a workflow with nodes is looked at once.

CREATE FUNCTION store_workflow(id uuid, workflow jsonb, nodes jsonb, submissions jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz := clock_timestamp();
    strange text;
    refused text;
BEGIN
    INSERT INTO task_groups (group_id, failure_limit) VALUES (id, (workflow ->> 'failure_threshold')::int);
    INSERT INTO workflows (
        workflow_id, user_id, name, tags, failure_threshold, total, live, has_nodes, created_at, updated_at)
    SELECT id, w.user_id, w.name, coalesce(w.tags, '{}'), w.failure_threshold, n.nodes + n.tasks, n.nodes + n.tasks,
           n.nodes > 0, moment, moment
    FROM jsonb_to_record(workflow) AS w(user_id text, name text, tags text[], failure_threshold int),
        (SELECT jsonb_array_length(nodes) AS nodes, jsonb_array_length(submissions) AS tasks) AS n;
    INSERT INTO barriers (barrier_id, group_id, key, source, source_is_barrier, path)
    SELECT n.node_id, id, n.key, n.source, n.source_is_node, n.path
    FROM jsonb_to_recordset(nodes) AS n(node_id uuid, key text, source uuid, source_is_node boolean, path text);
    INSERT INTO workflow_nodes (node_id, workflow_id, template)
    SELECT n.node_id, id, n.template FROM jsonb_to_recordset(nodes) AS n(node_id uuid, template jsonb);
    INSERT INTO workflow_events (workflow_id, seq, type, at, data)
    VALUES (id, 1, 'submit', moment, jsonb_build_object('status', 'running'));
    IF jsonb_array_length(submissions) > 0 THEN
        SELECT s.missing, s.refusal INTO strange, refused
        FROM store_tasks(submissions, submitter => :concern_of_workflow) AS s;
        IF refused IS NOT NULL THEN
            RAISE EXCEPTION '%', refused USING ERRCODE = 'WL404', DETAIL = strange;
        END IF;
    END IF;
    IF jsonb_array_length(nodes) > 0 THEN
        PERFORM write_event('workflow', id, 'submit');
    END IF;
END $$;
