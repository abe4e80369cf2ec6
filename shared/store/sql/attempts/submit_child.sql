-- Makes a child of a task that an attempt works on, once for each place in its work: an attempt that comes to the place
-- again is given the child that is there. In a later life one that died or was cancelled is made anew. The child is
-- its parent's user's, in the same project, workflow and run. Refused to an attempt that no longer owns its task, and
-- where somebody wants it cancelled: a child would slip through. What the child waits for is locked with the parent,
-- all in order, and so before `store_tasks` asks for it.

CREATE FUNCTION submit_child(fence jsonb, wanted_place text, submission jsonb)
RETURNS TABLE (refusal text, missing text, child_id uuid, actor text, is_new boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    owner  uuid := (fence ->> 'task_id')::uuid;
    waited uuid[];
    parent record;
    stored record;
BEGIN
    SELECT coalesce(array_agg(named::uuid), '{}') INTO waited
    FROM jsonb_array_elements_text(coalesce(submission -> 'depends_on', '[]')) AS named;
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (waited || owner) ORDER BY t.task_id FOR NO KEY UPDATE;
    IF NOT owns_task(fence) THEN
        RETURN QUERY SELECT 'lost', NULL::text, NULL::uuid, NULL::text, false;
        RETURN;
    END IF;
    SELECT t.* INTO parent FROM tasks t WHERE t.task_id = owner;
    RETURN QUERY
    SELECT NULL::text, NULL::text, c.child_id, t.actor::text, false
    FROM task_children c JOIN tasks t ON t.task_id = c.child_id
    WHERE c.task_id = owner AND c.place = wanted_place
      AND (c.life = parent.life OR t.status NOT IN :sources_of_revive);
    IF FOUND THEN RETURN; END IF;
    IF parent.cancel_requested THEN
        RETURN QUERY SELECT 'cancelled', NULL::text, NULL::uuid, NULL::text, false;
        RETURN;
    END IF;

    SELECT s.refusal, s.missing INTO stored FROM store_tasks(jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
        'project_id', parent.project_id, 'workflow_id', parent.workflow_id, 'traceparent', parent.traceparent,
        'workflow_run_id', parent.workflow_run_id, 'interaction_id', parent.interaction_id
    )) || submission || jsonb_build_object(
        'user_id', parent.user_id, 'reach', parent.user_id, 'parent_task_id', owner))) AS s;
    IF stored.refusal IS NOT NULL THEN
        RETURN QUERY SELECT stored.refusal, stored.missing, NULL::uuid, NULL::text, false;
        RETURN;
    END IF;
    INSERT INTO task_children AS c (task_id, place, child_id, life)
    VALUES (owner, wanted_place, (submission ->> 'task_id')::uuid, parent.life)
    ON CONFLICT (task_id, place) DO UPDATE SET child_id = excluded.child_id, life = excluded.life;
    RETURN QUERY SELECT NULL::text, NULL::text, (submission ->> 'task_id')::uuid, submission ->> 'actor', true;
END $$;
