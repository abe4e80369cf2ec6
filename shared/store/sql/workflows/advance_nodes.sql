-- What stands for the tasks of a `for_each` follows the task, or the other node, whose result has its list: when that
-- has completed it is ready to become tasks, which the janitor sees to; when that has failed it is dead, and when that
-- lives again it waits again. Who depends on it is told as by a task. The workflows are locked, and so is what `moved`;
-- of other tasks none is waited for.

CREATE FUNCTION advance_nodes(moved uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    turned    uuid[];
    before    text[];
    ended     uuid[];
    back      uuid[];
    any_ready boolean;
BEGIN
    WHILE cardinality(moved) > 0 LOOP
        -- Those that have ended by their own tasks, or live again by them.
        SELECT array_agg(n.node_id) FILTER (WHERE n.status IN ('completed', 'dead', 'cancelled')),
               array_agg(n.node_id) FILTER (WHERE n.status NOT IN ('completed', 'dead', 'cancelled'))
        INTO ended, back FROM workflow_nodes n WHERE n.node_id = ANY (moved);
        IF ended IS NOT NULL THEN
            PERFORM settle_dependents(ended, wait_for_nobody());
        END IF;
        IF back IS NOT NULL THEN
            PERFORM leave_unsettled(back, true);
        END IF;

        WITH judged AS (
            SELECT n.node_id, n.status AS was, source.status AS source FROM workflow_nodes n
            CROSS JOIN LATERAL (
                SELECT CASE WHEN n.source_is_node
                    THEN (SELECT s.status FROM workflow_nodes s WHERE s.node_id = n.source)
                    ELSE (SELECT t.status FROM tasks t WHERE t.task_id = n.source) END AS status
            ) AS source
            WHERE n.source = ANY (moved) AND n.expanded_at IS NULL
        ), nodes AS (
            UPDATE workflow_nodes n SET
                ready_at = CASE WHEN j.source = 'completed' THEN coalesce(n.ready_at, clock_timestamp()) END,
                ended_as = CASE WHEN j.source IN ('dead', 'cancelled') THEN 'dead' END,
                error = CASE WHEN j.source IN ('dead', 'cancelled') THEN jsonb_build_object(
                    'type', 'DependencyFailed', 'kind', 'permanent', 'stack_trace', NULL, 'attempt', 0,
                    'message', 'its list comes from ' || n.source || ', which died or was cancelled',
                    'details', jsonb_build_object('task_id', n.source)) END
            FROM judged j
            WHERE n.node_id = j.node_id AND (n.ended_as IS NULL OR n.error ->> 'type' = 'DependencyFailed')
            RETURNING n.node_id, n.status, j.was, n.ready_at
        )
        SELECT array_agg(n.node_id) FILTER (WHERE n.status <> n.was), array_agg(n.was) FILTER (WHERE n.status <> n.was),
               count(n.ready_at) > 0
        INTO turned, before, any_ready FROM nodes n;
        PERFORM count_nodes(turned, before) WHERE turned IS NOT NULL;
        PERFORM pg_notify('windlass_workflows', '') WHERE any_ready;
        moved := turned;
    END LOOP;
END $$;

-- Counts nodes anew that have another status than they had. The list that cannot be used is a failure of its own.

CREATE FUNCTION count_nodes(turned uuid[], before text[], failed int DEFAULT 0) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    changed uuid[];
    were    text[];
    halted  uuid[];
BEGIN
    WITH summed AS (
        SELECT n.workflow_id, sum(is_live(n.status) - is_live(was.status)) AS live,
               sum((n.status = 'completed')::int - (was.status = 'completed')::int) AS completed,
               sum((n.status = 'dead')::int - (was.status = 'dead')::int) AS dead,
               sum((n.status = 'cancelled')::int - (was.status = 'cancelled')::int) AS cancelled
        FROM unnest(turned, before) AS was(node_id, status) JOIN workflow_nodes n USING (node_id)
        GROUP BY n.workflow_id
    ), counted AS (
        UPDATE workflows w SET
            live = w.live + s.live, completed = w.completed + s.completed, dead = w.dead + s.dead,
            cancelled = w.cancelled + s.cancelled, failures = w.failures + failed, updated_at = clock_timestamp()
        FROM summed s, workflows was WHERE w.workflow_id = s.workflow_id AND was.workflow_id = w.workflow_id
        RETURNING w.workflow_id, was.status AS was, w.status
    )
    SELECT array_agg(c.workflow_id), array_agg(c.was), array_agg(c.workflow_id) FILTER (WHERE c.status = 'escalated')
    INTO changed, were, halted FROM counted c WHERE c.status <> c.was;
    PERFORM note_workflows(changed, were) WHERE changed IS NOT NULL;
    PERFORM halt_tasks(true, halted, '{}') WHERE halted IS NOT NULL;
END $$;
