-- From one run of a loop to the next, in as few statements as there are tables: this lies between two runs. Nothing is
-- read back that is known here, and the project's row and the history of both are written once. The project is locked,
-- it runs, and `item` waits. The item of the run that is over hears of it unless somebody has changed it since.

CREATE FUNCTION advance_run(
    run project_runs, status text, failure jsonb, item uuid, task jsonb, of_user text
)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment     timestamptz := clock_timestamp();
    next_run   uuid := new_id();
    next_task  uuid := submit_item(run.project_id, task, of_user);
    completed  boolean := status = 'completed';
    outcome    text := CASE WHEN completed THEN 'done' ELSE 'failed' END;
    place      numeric;
    called     text;
    is_closed  boolean;
    since      timestamptz;
    last_error jsonb;
    number     int;
BEGIN
    UPDATE project_runs r SET state = status, ended_at = moment, error = failure WHERE r.run_id = run.run_id;
    INSERT INTO project_runs (run_id, project_id, item_id, task_id, life, mode, named, started_at, schedule_id)
    VALUES (next_run, run.project_id, item, next_task, 1, 'loop', false, moment, run.schedule_id);
    UPDATE project_items i SET state = outcome, updated_at = moment
    WHERE i.item_id = run.item_id AND i.last_run_id = run.run_id RETURNING i.position, i.title INTO place, called;
    is_closed := FOUND;
    UPDATE project_items i SET last_run_id = next_run WHERE i.item_id = item;
    UPDATE projects p SET
        state = :queue_target_of_advance, mode = 'loop', current_run_id = next_run, stopped_at = NULL,
        stop_reason = NULL, last_error = coalesce(failure, p.last_error),
        last_seq = p.last_seq + 3 + is_closed::int, updated_at = moment
    WHERE p.project_id = run.project_id AND p.state IN :queue_sources_of_advance
    RETURNING p.started_at, p.last_error, p.last_seq INTO STRICT since, last_error, number;
    INSERT INTO project_events (project_id, seq, type, at, data)
    SELECT run.project_id, noted.seq, noted.type, moment, noted.data
    FROM (VALUES
        (number - 2 - is_closed::int, CASE WHEN completed THEN 'complete' ELSE 'bury' END,
         what_a_run_is(run.run_id, run.item_id, run.task_id, run.mode, status, run.started_at, moment, failure,
                       run.revived_from)),
        (number - 2, CASE WHEN completed THEN 'fulfil' ELSE 'fail' END,
         what_an_item_is(run.item_id, place, called, outcome)),
        (number - 1, 'advance',
         what_a_queue_is(:queue_target_of_advance, 'loop', next_run, since, NULL, NULL, last_error, next_task)),
        (number, 'open', what_a_run_is(next_run, item, next_task, 'loop', 'running', moment, NULL, NULL, NULL))
    ) AS noted(seq, type, data)
    WHERE is_closed OR noted.type NOT IN ('fulfil', 'fail');
    PERFORM pg_notify('windlass_events', run.project_id::text), pg_notify('windlass_projects', '');
END $$;
