-- What tasks are of: a workflow that counts them. `concerns` says so; the label `workflow_id` means nothing by itself.
-- Nobody moves such a task without having locked what it is of, before any task (docs/lock_order.md): so the counts of
-- a workflow are true at every commit, and of an escalation and a task that comes back to wait whoever is second sees
-- the other. Null where there are none.

CREATE FUNCTION subjects_of(wanted uuid[]) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT array_agg(DISTINCT t.workflow_id::uuid) FROM unnest(wanted) AS one(task_id)
        CROSS JOIN LATERAL (
            SELECT tasks.concerns, tasks.workflow_id FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0
        ) AS t
        WHERE t.concerns & :locks_a_subject <> 0);
END $$;

-- Locks what these tasks are of, before anybody locks a task: workflows by id.

CREATE FUNCTION lock_subjects(wanted uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    of_workflows uuid[] := subjects_of(wanted);
BEGIN
    IF of_workflows IS NOT NULL THEN
        PERFORM 1 FROM workflows w WHERE w.workflow_id = ANY (of_workflows)
        ORDER BY w.workflow_id FOR NO KEY UPDATE;
    END IF;
END $$;

-- For who waits for none, a sweep, or somebody who has locked tasks before: of those that it has chosen, the ones that
-- are of nothing and the ones whose workflow is free, which is locked from here on. Mostly it is one that is chosen,
-- and for so few Postgres would plan anew each time.

CREATE FUNCTION with_free_subjects(chosen uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    of_workflows uuid[] := subjects_of(chosen);
    free         uuid[];
BEGIN
    IF of_workflows IS NULL THEN RETURN chosen; END IF;
    free := ARRAY(
        SELECT w.workflow_id FROM workflows w WHERE w.workflow_id = ANY (of_workflows)
        ORDER BY w.workflow_id FOR NO KEY UPDATE SKIP LOCKED);
    RETURN ARRAY(
        SELECT t.task_id FROM unnest(chosen) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        -- Who names none, though somebody is concerned, is in nobody's way.
        WHERE CASE WHEN t.concerns & :concern_of_workflow <> 0 AND t.workflow_id IS NOT NULL
                   THEN t.workflow_id::uuid = ANY (free) ELSE true END);
END $$;

-- Ends of tasks that lock a subject: the subjects first, then as all ends.

CREATE FUNCTION end_tasks_of_subjects(endings jsonb, rules jsonb)
RETURNS TABLE (claim_token uuid, status text, actor text, provider text, age_seconds float) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_subjects(ARRAY(SELECT (e.ending ->> 'task_id')::uuid FROM jsonb_array_elements(endings) AS e(ending)));
    RETURN QUERY SELECT ended.* FROM end_tasks(endings, rules) AS ended;
END $$;
