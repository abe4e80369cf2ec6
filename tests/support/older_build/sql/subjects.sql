-- What tasks are of: a project whose run one is, a workflow that counts it. `concerns` says so; the labels `project_id`
-- and `workflow_id` mean nothing by themselves. Nobody moves such a task without having locked what it is of, before
-- any task (docs/lock_order.md): so a queue and the counts of a workflow are true at every commit, and of an escalation
-- and a task that comes back to wait whoever is second sees the other. Null where there are none.

CREATE FUNCTION subjects_of(wanted uuid[], OUT of_runs uuid[], OUT of_workflows uuid[]) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT array_agg(DISTINCT CASE WHEN t.concerns & :concern_of_run <> 0 THEN t.project_id::uuid END)
               FILTER (WHERE t.concerns & :concern_of_run <> 0),
           array_agg(DISTINCT CASE WHEN t.concerns & :concern_of_workflow <> 0 THEN t.workflow_id::uuid END)
               FILTER (WHERE t.concerns & :concern_of_workflow <> 0)
    INTO of_runs, of_workflows FROM unnest(wanted) AS one(task_id)
    CROSS JOIN LATERAL (
        SELECT tasks.concerns, tasks.project_id, tasks.workflow_id FROM tasks
        WHERE tasks.task_id = one.task_id OFFSET 0
    ) AS t
    WHERE t.concerns & :locks_a_subject <> 0;
END $$;

-- Locks what these tasks are of, before anybody locks a task: projects first, then workflows, each by id.

CREATE FUNCTION lock_subjects(wanted uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    subjects record;
BEGIN
    SELECT * INTO subjects FROM subjects_of(wanted);
    IF subjects.of_runs IS NOT NULL THEN
        PERFORM 1 FROM projects p WHERE p.project_id = ANY (subjects.of_runs) ORDER BY p.project_id FOR NO KEY UPDATE;
    END IF;
    IF subjects.of_workflows IS NOT NULL THEN
        PERFORM 1 FROM workflows w WHERE w.workflow_id = ANY (subjects.of_workflows)
        ORDER BY w.workflow_id FOR NO KEY UPDATE;
    END IF;
END $$;

-- For who waits for none, a sweep, or somebody who has locked tasks before: of those that it has chosen, the ones that
-- are of nothing and the ones whose project and workflow are free, which are locked from here on. Mostly it is one that
-- is chosen, and for so few Postgres would plan anew each time.

CREATE FUNCTION with_free_subjects(chosen uuid[]) RETURNS uuid[]
LANGUAGE plpgsql AS $$
DECLARE
    subjects record;
    free     uuid[];
BEGIN
    SELECT * INTO subjects FROM subjects_of(chosen);
    IF subjects.of_runs IS NULL AND subjects.of_workflows IS NULL THEN RETURN chosen; END IF;
    IF subjects.of_runs IS NOT NULL THEN
        free := ARRAY(
            SELECT p.project_id FROM projects p WHERE p.project_id = ANY (subjects.of_runs)
            ORDER BY p.project_id FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    IF subjects.of_workflows IS NOT NULL THEN
        free := free || ARRAY(
            SELECT w.workflow_id FROM workflows w WHERE w.workflow_id = ANY (subjects.of_workflows)
            ORDER BY w.workflow_id FOR NO KEY UPDATE SKIP LOCKED);
    END IF;
    RETURN ARRAY(
        SELECT t.task_id FROM unnest(chosen) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        -- Who names none, though somebody is concerned, is in nobody's way.
        WHERE CASE WHEN t.concerns & :concern_of_run <> 0 AND t.project_id IS NOT NULL
                   THEN t.project_id::uuid = ANY (free) ELSE true END
          AND CASE WHEN t.concerns & :concern_of_workflow <> 0 AND t.workflow_id IS NOT NULL
                   THEN t.workflow_id::uuid = ANY (free) ELSE true END);
END $$;

-- Ends of tasks that lock a subject: the subjects first, then as all ends.

CREATE FUNCTION end_tasks_of_subjects(endings jsonb, rules jsonb)
RETURNS TABLE (claim_token uuid, status text, actor text, provider text, age_seconds float) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_subjects(ARRAY(SELECT (e.ending ->> 'task_id')::uuid FROM jsonb_array_elements(endings) AS e(ending)));
    RETURN QUERY SELECT ended.* FROM end_tasks(endings, rules) AS ended;
END $$;
