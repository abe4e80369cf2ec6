-- Force-stop: the run's task and all that came of it are cancelled, and the project is idle only when nothing of them
-- lives. The first step is one transaction; the descendants are asked level by level, each call for itself, so that
-- tasks are locked in their order. Nobody slips in: what is asked to stop makes no more children.

CREATE FUNCTION force_stop_project(wanted uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    project projects;
    run     project_runs;
BEGIN
    SELECT * INTO project FROM projects p WHERE p.project_id = wanted FOR NO KEY UPDATE;
    IF project.state NOT IN :queue_sources_of_force THEN RETURN NULL; END IF;
    IF project.forced_at IS NULL THEN
        UPDATE projects p SET state = :queue_target_of_force, forced_at = clock_timestamp()
        WHERE p.project_id = wanted;
        PERFORM note_queue(wanted, 'force');
    END IF;
    SELECT * INTO run FROM project_runs r WHERE r.run_id = project.current_run_id;
    PERFORM cancel_tasks(ARRAY[run.task_id], 'force-stop');
    RETURN run.run_id;
END $$;

-- A task and all that came of it, however far. What has ended may have children that live.

CREATE FUNCTION family_of(root uuid) RETURNS TABLE (task_id uuid) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH RECURSIVE family AS (
        SELECT root AS task_id
        UNION
        SELECT child.task_id FROM family CROSS JOIN LATERAL (
            -- Two indexes, one for what lives and one for what has ended.
            SELECT t.task_id FROM tasks t
            WHERE t.parent_task_id = family.task_id AND t.status IN :sources_of_cancel
            UNION ALL
            SELECT t.task_id FROM tasks t
            WHERE t.parent_task_id = family.task_id AND t.status IN ('completed', 'dead', 'cancelled')
        ) AS child
    )
    SELECT f.task_id FROM family f;
END $$;

-- Asks those to stop that have not been asked yet, and returns how many there were: again, until there are none.

CREATE FUNCTION cancel_descendants(of_project uuid) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    asked uuid[];
BEGIN
    SELECT array_agg(t.task_id) INTO asked
    FROM projects p JOIN project_runs r ON r.run_id = p.current_run_id
    CROSS JOIN LATERAL family_of(r.task_id) AS f
    JOIN tasks t ON t.task_id = f.task_id
    WHERE p.project_id = of_project AND p.forced_at IS NOT NULL AND t.status IN :sources_of_cancel
      AND NOT t.cancel_requested AND t.level <= :level;
    IF asked IS NULL THEN RETURN 0; END IF;
    PERFORM cancel_tasks(asked, 'force-stop');
    RETURN cardinality(asked);
END $$;

-- What is left of a run: its family's live tasks, and their jobs at providers, which nobody can kill.

CREATE FUNCTION remains_of(root uuid, OUT still_running jsonb, OUT open_jobs jsonb) LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT coalesce(jsonb_agg(jsonb_build_object(
               'task_id', t.task_id, 'worker_id', t.worker_id, 'hostname', w.hostname,
               'since', coalesce(t.started_at, t.created_at),
               'why', CASE WHEN t.status <> 'running' THEN 'it waits, and is about to be cancelled'
                           WHEN t.lease_expires_at < clock_timestamp()
                           THEN 'its worker is not heard of any more; the janitor takes it back'
                           WHEN t.cancel_requested THEN 'its worker was told to stop it, and has not said that it did'
                           ELSE 'its worker is about to be told' END) ORDER BY t.task_id)
           FILTER (WHERE t.completed_at IS NULL), '[]'),
           coalesce(jsonb_agg(jsonb_build_object(
               'task_id', t.task_id, 'provider', t.provider, 'provider_job_id', t.provider_job_id,
               'since', t.started_at) ORDER BY t.task_id) FILTER (WHERE t.job_open), '[]')
    INTO still_running, open_jobs
    FROM family_of(root) AS f JOIN tasks t ON t.task_id = f.task_id LEFT JOIN workers w ON w.worker_id = t.worker_id
    WHERE t.completed_at IS NULL OR t.job_open;
END $$;

-- Idle only with proof. Returns whether it is. The caller need not have locked the project.

CREATE FUNCTION prove_stopped(wanted uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    project projects;
    run     project_runs;
    remains record;
BEGIN
    SELECT * INTO project FROM projects p WHERE p.project_id = wanted FOR NO KEY UPDATE;
    IF project.forced_at IS NULL THEN RETURN project.state = 'idle'; END IF;
    SELECT * INTO run FROM project_runs r WHERE r.run_id = project.current_run_id;
    SELECT r.still_running, r.open_jobs INTO remains FROM remains_of(run.task_id) AS r;
    IF run.ended_at IS NULL OR remains.still_running <> '[]' THEN RETURN false; END IF;
    UPDATE project_runs r SET receipt = jsonb_build_object(
        'asked_at', project.forced_at, 'proven_at', clock_timestamp(), 'open_jobs', remains.open_jobs,
        'tasks', coalesce((
            SELECT jsonb_agg(proof_of_end(f.task_id) ORDER BY f.task_id)
            FROM family_of(run.task_id) AS f JOIN tasks t ON t.task_id = f.task_id
            WHERE t.completed_at >= project.forced_at OR t.task_id = run.task_id), '[]'))
    WHERE r.run_id = run.run_id;
    INSERT INTO audit_log (key_id, user_id, action, target, details)
    SELECT 'project', project.user_id, 'project.force-stopped', wanted::text, r.receipt || jsonb_build_object(
        'run_id', r.run_id)
    FROM project_runs r WHERE r.run_id = run.run_id;
    PERFORM finish_project(wanted, 'forced', NULL, '{}');
    RETURN true;
END $$;

-- How it is known that nothing of a task's last attempt lives: its worker said so when the work had `returned`, the
-- `keeper` of its processes or the `guardian` of its worker has seen the last of them die, a `successor` of its worker
-- has found none of them left, or only its `lease` is over, by which time its worker has promised to have stopped.
-- Null when no attempt was under way.

CREATE FUNCTION proof_of_end(wanted uuid) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
DECLARE
    task  tasks;
    since int;
    last  task_events;
BEGIN
    SELECT * INTO task FROM tasks t WHERE t.task_id = wanted;
    SELECT coalesce(max(e.seq), 0) INTO since FROM task_events e WHERE e.task_id = wanted AND e.type = 'revive';
    -- The last way out of an attempt. A cancel without its duration and without `cancel-requested` found it waiting.
    SELECT e.* INTO last FROM task_events e
    WHERE e.task_id = wanted AND e.seq > since AND e.attempt = task.attempt
      AND (e.type IN ('complete', 'retry', 'bury', 'interrupt', 'stall')
           OR (e.type = 'cancel' AND (e.data ? 'elapsed_ms' OR e.data ? 'proof' OR EXISTS (
               SELECT 1 FROM task_events c
               WHERE c.task_id = wanted AND c.seq > since AND c.type = 'cancel-requested'))))
    ORDER BY e.seq DESC LIMIT 1;
    RETURN jsonb_build_object(
        'task_id', task.task_id, 'worker_id', task.worker_id, 'attempt', task.attempt, 'status', task.status,
        'ended_at', task.completed_at,
        'proof', CASE WHEN last.seq IS NULL OR task.attempt = 0 THEN NULL
                      WHEN last.data -> 'proof' ->> 'by' IN ('guardian', 'successor')
                      THEN last.data -> 'proof' ->> 'by'
                      WHEN last.data -> 'proof' ? 'keeper' THEN 'keeper'
                      WHEN last.data ? 'elapsed_ms' THEN 'returned'
                      ELSE 'lease' END,
        'processes', last.data -> 'proof');
END $$;
