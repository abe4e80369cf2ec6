-- From one run of a loop to the next, in as few statements as there are tables: this lies between two runs. What is
-- closed, what follows and what is noted of both are written together, and the project's row once. The project is
-- locked, it runs, and `item` waits.

CREATE FUNCTION advance_run(
    run project_runs, status text, failure jsonb, item uuid, task jsonb, of_user text
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz := clock_timestamp();
    opened  project_runs;
    closed  project_items;
    project projects;
    notes   jsonb[];
BEGIN
    opened.run_id := new_id();
    opened.task_id := submit_item(run.project_id, task, of_user);
    UPDATE project_runs r SET state = status, ended_at = moment, error = failure
    WHERE r.run_id = run.run_id RETURNING * INTO run;
    notes := ARRAY[note_of_run(run, CASE status WHEN 'completed' THEN 'complete' ELSE 'bury' END)];
    WITH items AS (
        UPDATE project_items i SET
            state = CASE WHEN i.last_run_id = run.run_id THEN CASE status WHEN 'completed' THEN 'done' ELSE 'failed' END
                         ELSE i.state END,
            updated_at = CASE WHEN i.last_run_id = run.run_id THEN moment ELSE i.updated_at END,
            last_run_id = CASE i.item_id WHEN item THEN opened.run_id ELSE i.last_run_id END
        WHERE i.item_id = ANY (ARRAY[run.item_id, item]) AND (i.item_id = item OR i.last_run_id = run.run_id)
        RETURNING i.*
    )
    SELECT i.* INTO closed FROM items i WHERE i.last_run_id = run.run_id;
    IF FOUND THEN
        notes := notes || note_of_item(closed, CASE status WHEN 'completed' THEN 'fulfil' ELSE 'fail' END);
    END IF;
    INSERT INTO project_runs (run_id, project_id, item_id, task_id, life, mode, named, schedule_id)
    VALUES (opened.run_id, run.project_id, item, opened.task_id, 1, 'loop', false, run.schedule_id)
    RETURNING * INTO opened;
    UPDATE projects p SET
        state = :queue_target_of_advance, mode = 'loop', current_run_id = opened.run_id, stopped_at = NULL,
        stop_reason = NULL, last_error = coalesce(failure, p.last_error),
        last_seq = p.last_seq + cardinality(notes) + 2, updated_at = moment
    WHERE p.project_id = run.project_id AND p.state IN :queue_sources_of_advance
    RETURNING * INTO STRICT project;
    PERFORM write_notes(
        run.project_id, project.last_seq,
        notes || note_of_queue(project, 'advance', opened.task_id) || note_of_run(opened, 'open'));
END $$;
