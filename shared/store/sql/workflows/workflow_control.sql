-- Cancels a workflow: what waits now, what runs when its worker has stopped it; as much as one transaction may, and the
-- janitor goes on. From here on nothing of it starts, comes back or joins. Returns what has ended by it.

CREATE FUNCTION cancel_workflow(id uuid)
RETURNS TABLE (:columns_of_workflows, was text, ended jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    before text;
    over   uuid[];
BEGIN
    SELECT w.status INTO before FROM workflows w WHERE w.workflow_id = id FOR NO KEY UPDATE;
    IF before IN ('running', 'escalated') AND NOT is_given_up(id::text) THEN
        UPDATE workflows w SET cancel_requested = true, unfinished = true WHERE w.workflow_id = id;
        PERFORM note_workflows(ARRAY[id], ARRAY[before], CASE WHEN w.live > 0 THEN 'cancel-requested' END)
        FROM workflows w WHERE w.workflow_id = id;
        PERFORM cancel_nodes(id);
        SELECT a.ended INTO over FROM advance_workflow(id, dependents_at_once()) AS a;
        PERFORM wake_streams(ARRAY[id]);
    END IF;
    RETURN QUERY SELECT :each_of_workflows(w), before, counts_of(over) FROM workflows w WHERE w.workflow_id = id;
END $$;

CREATE FUNCTION cancel_nodes(id uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    turned uuid[];
    before text[];
BEGIN
    WITH nodes AS (
        UPDATE workflow_nodes n SET ended_as = 'cancelled' FROM workflow_nodes was
        WHERE n.workflow_id = id AND n.expanded_at IS NULL AND n.ended_as IS NULL AND was.node_id = n.node_id
        RETURNING n.node_id, was.status AS was
    )
    SELECT array_agg(n.node_id), array_agg(n.was) INTO turned, before FROM nodes n;
    PERFORM count_nodes(turned, before) WHERE turned IS NOT NULL;
END $$;

-- Does the next page of what a workflow's status demands of its tasks: of a cancelled one they are cancelled, of an
-- escalated one what waits is held, of another what was held goes on. Children come before their parents, so that who
-- is cancelled is not buried instead. Says whether there is more.

CREATE FUNCTION advance_workflow(id uuid, at_most int, OUT more boolean, OUT ended uuid[]) LANGUAGE plpgsql AS $$
DECLARE
    found workflows;
    page  uuid[];
BEGIN
    SELECT * INTO found FROM workflows w WHERE w.workflow_id = id FOR NO KEY UPDATE;
    ended := '{}';
    IF found.cancel_requested THEN
        page := ARRAY(
            SELECT t.task_id FROM tasks t
            WHERE t.workflow_id = id::text AND t.status IN ('blocked', 'queued', 'running', 'retrying')
              AND t.concerns & :concern_of_workflow <> 0 AND NOT t.cancel_requested
            ORDER BY t.task_id DESC LIMIT at_most);
        SELECT c.ended INTO ended FROM cancel_tasks(page) AS c;
    ELSIF found.status = 'escalated' THEN
        page := ARRAY(SELECT waiting_of(id, at_most));
        PERFORM hold_tasks(page, 'workflow');
    ELSE
        page := held_of(id, at_most);
        PERFORM release_tasks(page, 'workflow');
    END IF;
    more := cardinality(page) = at_most;
    IF NOT more THEN
        UPDATE workflows w SET unfinished = false WHERE w.workflow_id = id;
    ELSE
        PERFORM pg_notify('windlass_workflows', '');
    END IF;
END $$;

-- A page of those that stand still because their workflow is escalated.

CREATE FUNCTION held_of(id uuid, at_most int) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT t.task_id FROM tasks t
        WHERE t.workflow_id = id::text AND t.status IN ('blocked', 'queued', 'running', 'retrying')
          AND 'workflow' = ANY (t.held)
        ORDER BY t.task_id LIMIT at_most);
END $$;

-- The next of those that the janitor has to go on with; no row when there are none.

CREATE FUNCTION advance_next(at_most int) RETURNS TABLE (workflow_id uuid, ended jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    chosen uuid;
BEGIN
    SELECT w.workflow_id INTO chosen FROM workflows w WHERE w.unfinished
    ORDER BY w.workflow_id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN; END IF;
    RETURN QUERY SELECT chosen, counts_of(a.ended) FROM advance_workflow(chosen, at_most) AS a;
END $$;

-- A person lets an escalated workflow go on: with what failed as it is (`none`), with a new life for that and for what
-- it had buried (`failed`), or also for what was cancelled behind it (`failed-and-downstream`). What completed stays.
-- They are revived while it still stands: so it changes its status once, and then all go on together.

CREATE FUNCTION resume_workflow(id uuid, mode text)
RETURNS TABLE (:columns_of_workflows, was text, revived jsonb, ended jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    before text;
    failed uuid[];
    back   uuid[];
    over   uuid[];
BEGIN
    PERFORM lock_keys_of(failed_of(id, mode)) WHERE mode <> 'none';
    SELECT w.status INTO before FROM workflows w WHERE w.workflow_id = id FOR NO KEY UPDATE;
    IF before = 'escalated' THEN
        IF mode <> 'none' THEN
            -- What goes on below is locked with them: after a revival nobody may be waited for.
            SELECT r.everybody, r.ended INTO back, over
            FROM revive_tasks(failed_of(id, mode), held_of(id, dependents_at_once())) AS r;
        END IF;
        UPDATE workflows w SET failures = 0, resumed_at = clock_timestamp(), unfinished = true
        WHERE w.workflow_id = id;
        PERFORM note_workflows(ARRAY[id], ARRAY[before], 'resume');
        PERFORM advance_workflow(id, dependents_at_once());
        PERFORM wake_streams(ARRAY[id]);
    END IF;
    RETURN QUERY SELECT :each_of_workflows(w), before, counts_of(back), counts_of(over)
    FROM workflows w WHERE w.workflow_id = id;
END $$;

-- What is dead of a workflow by its own failure, and, if that is wished, what ended behind it without having completed.

CREATE FUNCTION failed_of(id uuid, mode text) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE failed(task_id) AS (
            SELECT t.task_id FROM tasks t
            WHERE t.workflow_id = id::text AND t.status = 'dead' AND t.concerns & :concern_of_workflow <> 0
              AND t.error ->> 'type' <> 'DependencyFailed'
            UNION
            SELECT d.child_id FROM failed f JOIN task_dependencies d ON d.parent_id = f.task_id
            WHERE mode = 'failed-and-downstream'
        )
        SELECT t.task_id FROM failed f JOIN tasks t USING (task_id)
        WHERE t.status IN :sources_of_revive AND t.workflow_id = id::text);
END $$;
