-- What projects are told of the tasks of their runs. An end closes the open run whose `(task_id, life)` it is, whatever
-- the project does now; the next run starts only if the project runs, loops, and nobody has asked it to stop. That is
-- the whole fence. A superseded task is nobody's run any more, and its end closes nothing. Whoever moved the tasks, or
-- tells of them again, has locked their projects before.

CREATE FUNCTION tell_run(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    move jsonb;
BEGIN
    -- Nearly always there is one, and to ask for it by a statement would take longer than to look at it.
    FOR place IN 0..jsonb_array_length(moves) - 1 LOOP
        move := moves -> place;
        IF move ->> 'move' = 'revive' THEN
            PERFORM reopen_run(t.task_id, t.life, t.attempt)
            FROM tasks t JOIN projects p ON p.project_id = t.project_id::uuid
            WHERE t.task_id = (move ->> 'task_id')::uuid AND t.life = (move ->> 'life')::int
              AND t.completed_at IS NULL AND p.state = 'idle';
        ELSIF move ->> 'status' IN ('completed', 'dead', 'cancelled') THEN
            PERFORM close_run((move ->> 'task_id')::uuid, (move ->> 'life')::int, move ->> 'status');
        END IF;
    END LOOP;
END $$;

-- Closes the open run of a task in this life, if there is one, by the task's end, and decides what follows. The project
-- and what waits in it are asked for at once; the item of this run does not wait any more, unless somebody has changed
-- it since.

CREATE FUNCTION close_run(ended uuid, in_life int, status text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    project record;
    reason  text;
    failure jsonb;
    notes   jsonb[];
BEGIN
    SELECT p.state, p.forced_at, p.on_failure, p.user_id, r AS run, r.mode, next_one.item_id, next_one.task INTO project
    FROM project_runs r JOIN projects p ON p.project_id = r.project_id LEFT JOIN LATERAL (
        SELECT i.item_id, i.task FROM project_items i
        WHERE r.mode = 'loop' AND i.project_id = r.project_id AND i.state = 'waiting'
          AND i.last_run_id IS DISTINCT FROM r.run_id
        ORDER BY i.position LIMIT 1
    ) AS next_one ON true
    WHERE r.task_id = ended AND r.life = in_life AND r.ended_at IS NULL;
    IF NOT FOUND THEN RETURN; END IF;
    reason := CASE WHEN project.forced_at IS NOT NULL THEN 'forced'
                   WHEN project.state = 'stopping' OR status = 'cancelled' THEN 'stopped'
                   WHEN status = 'dead' AND (project.mode = 'single' OR project.on_failure = 'stop') THEN 'failed'
                   WHEN project.item_id IS NULL THEN 'finished' END;
    IF status = 'dead' THEN
        failure := (SELECT t.error FROM tasks t WHERE t.task_id = ended);
    END IF;
    IF reason IS NULL THEN
        PERFORM advance_run(project.run, status, failure, project.item_id, project.task, project.user_id);
        RETURN;
    END IF;
    notes := end_run(
        (project.run).run_id, status,
        CASE status WHEN 'completed' THEN 'complete' WHEN 'dead' THEN 'bury' ELSE 'cancel' END, failure);
    IF reason = 'forced' THEN
        PERFORM note_project((project.run).project_id, notes);
        PERFORM prove_stopped((project.run).project_id);
    ELSE
        PERFORM finish_project((project.run).project_id, reason, failure, notes);
    END IF;
END $$;

-- A task of a run that was revived by hand while its project stood still is a new single run. It has its item as long
-- as that has not been changed since its last run.

CREATE FUNCTION reopen_run(revived uuid, in_life int, attempts int) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    last project_runs;
    run  project_runs;
BEGIN
    SELECT * INTO last FROM project_runs r WHERE r.task_id = revived ORDER BY r.life DESC LIMIT 1;
    INSERT INTO project_runs (
        run_id, project_id, item_id, task_id, life, attempts_before, mode, named, revived_from)
    VALUES (new_id(), last.project_id, last.item_id, revived, in_life, attempts, 'single', true, last.run_id)
    RETURNING * INTO run;
    UPDATE project_items i SET last_run_id = run.run_id
    WHERE i.item_id = last.item_id AND i.last_run_id = last.run_id AND i.state IN :item_sources_of_fulfil;
    PERFORM begin_run(run);
END $$;

-- What bars a revival by hand: a project that is not idle, or is archived. Its lock is kept, and taken before any
-- task's. A plain task, and one that another has superseded, is barred by nothing.

CREATE FUNCTION bar_of_revival(wanted uuid, OUT bar text, OUT open_run_id uuid) LANGUAGE plpgsql AS $$
BEGIN
    PERFORM lock_subjects(ARRAY[wanted]);
    SELECT CASE WHEN p.state <> 'idle' THEN 'queue-already-running'
                WHEN p.archived_at IS NOT NULL THEN 'project-archived' END, p.current_run_id
    INTO bar, open_run_id
    FROM tasks t JOIN projects p ON p.project_id = t.project_id::uuid
    WHERE t.task_id = wanted AND t.concerns & :concern_of_run <> 0 AND t.status IN :sources_of_revive;
END $$;

-- Of tasks that are to be revived in bulk, those of runs are taken out, and the items that they have failed go to the
-- heads of their backlogs, in the order of the tasks. `others` are for a revival; `requeued` is how many went back. To
-- choose anew is left to the janitor, who hears of it: here a run's task would be locked out of order.

CREATE FUNCTION requeue_items_of(wanted uuid[], OUT others uuid[], OUT requeued int) LANGUAGE plpgsql AS $$
DECLARE
    item record;
BEGIN
    requeued := 0;
    PERFORM lock_subjects(wanted);
    SELECT array_agg(t.task_id ORDER BY t.task_id) INTO others
    FROM unnest(wanted) AS one(task_id)
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
    WHERE t.concerns & :concern_of_run = 0;
    others := coalesce(others, '{}');
    IF cardinality(others) = cardinality(wanted) THEN RETURN; END IF;
    FOR item IN
        SELECT i.item_id, i.project_id FROM unnest(wanted) AS one(task_id)
        JOIN project_runs r ON r.task_id = one.task_id
        JOIN project_items i ON i.item_id = r.item_id AND i.last_run_id = r.run_id
        JOIN projects p ON p.project_id = i.project_id
        WHERE i.state = 'failed' AND r.ended_at IS NOT NULL AND p.archived_at IS NULL AND one.task_id <> ALL (others)
        ORDER BY one.task_id DESC
    LOOP
        UPDATE project_items i SET
            state = :item_target_of_requeue, position = head_of(item.project_id), last_run_id = NULL,
            updated_at = clock_timestamp()
        WHERE i.item_id = item.item_id;
        PERFORM note_item(item.item_id, 'requeue');
        requeued := requeued + 1;
    END LOOP;
END $$;

-- Projects that are not idle and have no run that lives: there should be none, for every end closes its run. Those that
-- somebody is just moving are left to them. Returns how many it had to mend.

CREATE FUNCTION recheck_projects(at_most int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    orphan uuid;
    mended int := 0;
BEGIN
    FOREACH orphan IN ARRAY orphans(at_most) LOOP
        PERFORM 1 FROM projects p WHERE p.project_id = orphan FOR NO KEY UPDATE SKIP LOCKED;
        IF FOUND AND is_orphan(orphan) THEN
            PERFORM mend_project(orphan);
            mended := mended + 1;
        END IF;
    END LOOP;
    RETURN mended;
END $$;

CREATE FUNCTION orphans(at_most int) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT p.project_id FROM projects p WHERE p.state <> 'idle' AND is_orphan(p.project_id)
        ORDER BY p.project_id LIMIT at_most);
END $$;

-- It is not idle, nothing of its run lives, and no proof is waited for.

CREATE FUNCTION is_orphan(wanted uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM projects p LEFT JOIN project_runs r ON r.run_id = p.current_run_id
        LEFT JOIN tasks t ON t.task_id = r.task_id
        WHERE p.project_id = wanted AND p.state <> 'idle'
          AND (r.run_id IS NULL OR (r.ended_at IS NOT NULL AND p.forced_at IS NULL)
               OR (r.ended_at IS NULL AND (t.task_id IS NULL OR t.life <> r.life OR t.completed_at IS NOT NULL))));
END $$;

CREATE FUNCTION mend_project(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    run  project_runs;
    task tasks;
    lost jsonb := jsonb_build_object(
        'type', 'Lost', 'kind', 'permanent', 'message', 'the task of the run is not there any more', 'details', NULL,
        'stack_trace', NULL, 'attempt', 0);
BEGIN
    SELECT * INTO run FROM project_runs r WHERE r.project_id = wanted AND r.ended_at IS NULL;
    SELECT * INTO task FROM tasks t WHERE t.task_id = run.task_id;
    IF run.run_id IS NULL THEN
        PERFORM finish_project(wanted, 'stopped', NULL, '{}');
    ELSIF task.task_id IS NULL OR task.life <> run.life THEN
        PERFORM finish_project(wanted, 'failed', lost, end_run(run.run_id, :run_target_of_lose, 'lose', lost));
    ELSE
        PERFORM close_run(run.task_id, run.life, task.status);
    END IF;
END $$;

-- After a restore: the numbers go beyond what anybody may have seen, and runs whose tasks have vanished are closed.
-- Returns how many were.

CREATE FUNCTION restore_projects(step int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    lost uuid;
    gone int := 0;
BEGIN
    UPDATE projects p SET last_seq = p.last_seq + step WHERE p.last_seq > 0;
    PERFORM note_queue(p.project_id, 'restore') FROM projects p WHERE p.last_seq > 0;
    FOREACH lost IN ARRAY orphans(2147483647) LOOP
        PERFORM mend_project(lost);
        gone := gone + 1;
    END LOOP;
    RETURN gone;
END $$;

-- What has happened and was not written to a log yet, each once, whoever asks.

CREATE FUNCTION say_project_events(at_most int)
RETURNS TABLE (project_id uuid, seq int, type text, data jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH unsaid AS (
        SELECT e.project_id, e.seq FROM project_events e WHERE NOT e.said
        ORDER BY e.project_id, e.seq LIMIT at_most FOR UPDATE SKIP LOCKED
    )
    UPDATE project_events e SET said = true FROM unsaid u WHERE e.project_id = u.project_id AND e.seq = u.seq
    RETURNING e.project_id, e.seq, e.type::text, e.data;
END $$;
