-- A project's queue: one function for each move, under the project's lock, which is taken before any task's
-- (docs/lock_order.md). What a project is told of its tasks is in `tell_run.sql`.

-- Makes a project, or finds the one that was made under the same key. A refusal is a row with nothing else in it.

CREATE FUNCTION create_project(wanted jsonb)
RETURNS TABLE (refusal text, project_id uuid, deduplicated boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    fresh   uuid := (wanted ->> 'task_id')::uuid;
    earlier uuid;
BEGIN
    BEGIN
        earlier := owners_of_keys(jsonb_build_array(wanted), 'idempotency') ->> fresh::text;
    EXCEPTION WHEN SQLSTATE 'WL409' OR SQLSTATE 'WL422' THEN
        RETURN QUERY SELECT SQLERRM, NULL::uuid, false;
        RETURN;
    END;
    IF earlier IS NULL THEN
        INSERT INTO projects (project_id, user_id, name, defaults, on_failure)
        VALUES (fresh, wanted ->> 'user_id', wanted ->> 'name', wanted -> 'defaults', wanted ->> 'on_failure');
    END IF;
    RETURN QUERY SELECT NULL::text, coalesce(earlier, fresh), earlier IS NOT NULL;
END $$;

-- A project's history is written in notes, `{type, data}`. What one move does is gathered and written at once, for a
-- loop does four things between two runs. The caller has locked the project.

CREATE FUNCTION note_project(noted uuid, notes jsonb[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    number int;
BEGIN
    UPDATE projects p SET last_seq = p.last_seq + cardinality(notes), updated_at = clock_timestamp()
    WHERE p.project_id = noted RETURNING p.last_seq INTO number;
    PERFORM write_notes(noted, number, notes);
END $$;

-- For whoever has counted them in the project's row already: the last has this number.

CREATE FUNCTION write_notes(noted uuid, last_number int, notes jsonb[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
BEGIN
    INSERT INTO project_events (project_id, seq, type, at, data)
    SELECT noted, last_number - cardinality(notes) + n.place, n.note ->> 'type', moment, n.note -> 'data'
    FROM unnest(notes) WITH ORDINALITY AS n(note, place);
    PERFORM pg_notify('windlass_events', noted::text), pg_notify('windlass_projects', '');
END $$;

-- As it stands after a change of the queue's state, behind the notes of what led to it.

CREATE FUNCTION note_queue(noted uuid, type text, before jsonb[] DEFAULT '{}') RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_project(noted, before || note_of_queue(
        p, type, (SELECT r.task_id FROM project_runs r WHERE r.run_id = p.current_run_id)))
    FROM projects p WHERE p.project_id = noted;
    PERFORM tell_of_project(noted, type) WHERE type IN ('start', 'finish');
END $$;

CREATE FUNCTION note_item(noted uuid, type text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM note_project(i.project_id, ARRAY[note_of_item(i, type)]) FROM project_items i WHERE i.item_id = noted;
END $$;

CREATE FUNCTION note_of_queue(p projects, type text, current_task uuid) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object('type', type, 'data', what_a_queue_is(
        p.state, p.mode, p.current_run_id, p.started_at, p.stopped_at, p.stop_reason, p.last_error, current_task));
END $$;

CREATE FUNCTION note_of_run(r project_runs, type text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object('type', type, 'data', what_a_run_is(
        r.run_id, r.item_id, r.task_id, r.mode, r.state, r.started_at, r.ended_at, r.error, r.revived_from));
END $$;

CREATE FUNCTION note_of_item(i project_items, type text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object('type', type, 'data', what_an_item_is(i.item_id, i.position, i.title, i.state));
END $$;

-- What the history has of each. In SQL, of single values: so they become part of the statement that writes them, where
-- a call that is handed a row takes longer than the rest of an advance's note.

CREATE FUNCTION what_a_queue_is(
    state text, mode text, current_run_id uuid, started_at timestamptz, stopped_at timestamptz, stop_reason text,
    last_error jsonb, current_task uuid
)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'state', state, 'mode', mode, 'current_run_id', current_run_id, 'started_at', started_at,
        'stopped_at', stopped_at, 'stop_reason', stop_reason, 'last_error', last_error,
        'current_task_id', current_task)
$$;

CREATE FUNCTION what_a_run_is(
    run_id uuid, item_id uuid, task_id uuid, mode text, state text, started_at timestamptz, ended_at timestamptz,
    error jsonb, revived_from uuid
)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_strip_nulls(jsonb_build_object(
        'run_id', run_id, 'item_id', item_id, 'task_id', task_id, 'mode', mode, 'state', state,
        'started_at', started_at, 'ended_at', ended_at, 'error', error, 'revived_from', revived_from))
$$;

CREATE FUNCTION what_an_item_is(item_id uuid, place numeric, title text, state text)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'item_id', item_id, 'position', trim_scale(place)::text, 'title', title, 'state', state)
$$;

-- An id as clients' tasks have them, which begins with the time: lists are in the order of ids.

CREATE FUNCTION new_id() RETURNS uuid LANGUAGE sql AS $$
    SELECT (lpad(to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || substr(gen_random_uuid()::text, 16))::uuid
$$;

-- Starts a project: with the first item that waits, or with the one that is named.

CREATE FUNCTION start_project(wanted uuid, wanted_mode text, wanted_item uuid)
RETURNS TABLE (refusal text, run_id uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    project projects;
    item    project_items;
BEGIN
    SELECT * INTO project FROM projects p WHERE p.project_id = wanted FOR NO KEY UPDATE;
    IF project.state NOT IN :queue_sources_of_start THEN
        RETURN QUERY SELECT 'queue-already-running', project.current_run_id;
        RETURN;
    ELSIF project.archived_at IS NOT NULL THEN
        RETURN QUERY SELECT 'project-archived', NULL::uuid;
        RETURN;
    END IF;
    SELECT i.* INTO item FROM project_items i
    WHERE i.item_id = coalesce(wanted_item, first_waiting(wanted)) AND i.project_id = wanted;
    IF NOT FOUND THEN
        RETURN QUERY SELECT CASE WHEN wanted_item IS NULL THEN 'backlog-empty' ELSE 'item-not-found' END, NULL::uuid;
        RETURN;
    ELSIF item.state <> 'waiting' THEN
        RETURN QUERY SELECT 'item-not-waiting', NULL::uuid;
        RETURN;
    END IF;
    RETURN QUERY SELECT NULL::text, open_run(wanted, item.item_id, wanted_mode, wanted_item IS NOT NULL);
END $$;

CREATE FUNCTION first_waiting(of_project uuid) RETURNS uuid LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT i.item_id FROM project_items i WHERE i.project_id = of_project AND i.state = 'waiting'
        ORDER BY i.position LIMIT 1);
END $$;

-- Submits an item's task, complete as it was stored, and opens the run that a queue starts with. How it goes on is in
-- `advance_run.sql`.

CREATE FUNCTION open_run(of_project uuid, of_item uuid, wanted_mode text, is_named boolean)
RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    run project_runs;
BEGIN
    INSERT INTO project_runs (run_id, project_id, item_id, task_id, life, mode, named)
    SELECT new_id(), of_project, of_item, submit_item(of_project, i.task, p.user_id), 1, wanted_mode, is_named
    FROM project_items i JOIN projects p ON p.project_id = i.project_id WHERE i.item_id = of_item
    RETURNING * INTO run;
    UPDATE project_items i SET last_run_id = run.run_id WHERE i.item_id = of_item;
    PERFORM begin_run(run);
    RETURN run.run_id;
END $$;

-- The task of an item, born as the run's: its moves are told to the project, and older functions leave it alone. It
-- stands alone and has no endpoint of its own (`NOT_OF_AN_ITEM`), so that of all that `store_tasks` does next to
-- nothing is left, and this lies between two runs. Only where a person is asked it goes the long way. A time that has
-- passed means now: written down as it is, it would go before everybody who waits.

CREATE FUNCTION submit_item(of_project uuid, task jsonb, of_user text) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    moment      timestamptz := clock_timestamp();
    stored      uuid := new_id();
    of_provider text;
    of_actor    text;
    tagged      text[];
    tag         text;
BEGIN
    IF task ? 'approval' THEN
        PERFORM store_tasks(jsonb_build_array(
            CASE WHEN (task ->> 'run_at')::timestamptz <= moment THEN task - 'run_at' ELSE task END
            || jsonb_build_object(
                'task_id', stored, 'user_id', of_user, 'project_id', of_project,
                'concerns', coalesce((task ->> 'concerns')::int, 0) | :concern_of_run,
                'level', greatest((task ->> 'level')::int, :level_of_a_run))));
        RETURN stored;
    END IF;
    INSERT INTO tasks (
        task_id, actor, task_type, provider, status, priority, payload, max_retries, timeout_seconds, max_age_seconds,
        expires_at, available_at, created_at, updated_at, user_id, tags, project_id, workflow_run_id, interaction_id,
        retry_delays, level, concerns, concurrency_key, request_id)
    SELECT
        stored, s.actor, s.task_type, s.provider, 'queued', coalesce(s.priority, 2), s.payload,
        coalesce(s.max_retries, 3), s.timeout_seconds, s.max_age_seconds,
        moment + make_interval(secs => s.max_age_seconds),
        greatest(s.run_at, moment + make_interval(secs => coalesce(s.delay_seconds, 0))), moment, moment, of_user,
        coalesce(s.tags, '{}'), of_project, s.workflow_run_id, s.interaction_id, s.retry_delays,
        greatest(s.level, :level_of_a_run), coalesce(s.concerns, 0) | :concern_of_run, s.concurrency_key, s.request_id
    FROM jsonb_to_record(task) AS s(
        actor text, task_type text, provider text, priority smallint, payload jsonb, max_retries int,
        timeout_seconds float, max_age_seconds float, run_at timestamptz, delay_seconds float, tags text[],
        workflow_run_id text, interaction_id text, retry_delays jsonb, level smallint, concerns int,
        concurrency_key text, request_id text)
    RETURNING tasks.provider, tasks.actor, tasks.tags INTO of_provider, of_actor, tagged;
    INSERT INTO task_events (task_id, seq, type, at, attempt, data)
    VALUES (stored, 1, 'submit', moment, 0, '{"status": "queued"}');
    INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
    VALUES (of_user, of_provider, of_actor, 'submitted', 1);
    -- Most have one or none, for which this takes half the time of a list.
    FOREACH tag IN ARRAY tagged LOOP
        INSERT INTO task_tags (tag, task_id) VALUES (tag, stored) ON CONFLICT DO NOTHING;
    END LOOP;
    PERFORM pg_notify('windlass_events', stored::text), pg_notify('windlass_dispatch', of_provider);
    RETURN stored;
END $$;

-- One write of the project's row for all: each more would be one more version of it in the same transaction.

CREATE FUNCTION begin_run(run project_runs) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    project projects;
BEGIN
    UPDATE projects p SET
        state = :queue_target_of_start, mode = run.mode, current_run_id = run.run_id, started_at = run.started_at,
        stopped_at = NULL, stop_reason = NULL, last_error = NULL, last_seq = p.last_seq + 2,
        updated_at = clock_timestamp()
    WHERE p.project_id = run.project_id AND p.state IN :queue_sources_of_start RETURNING * INTO STRICT project;
    PERFORM write_notes(
        run.project_id, project.last_seq,
        ARRAY[note_of_queue(project, 'start', run.task_id), note_of_run(run, 'open')]);
    PERFORM tell_of_project(run.project_id, 'start');
END $$;

-- Stops a project, also when it has stopped: a run that no worker has taken is withdrawn at once, and its item is first
-- again; one that runs, or waits for its retry, ends, and none follows.

CREATE FUNCTION stop_project(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    project projects;
    run     project_runs;
BEGIN
    SELECT * INTO project FROM projects p WHERE p.project_id = wanted FOR NO KEY UPDATE;
    IF project.state NOT IN :queue_sources_of_stop THEN RETURN; END IF;
    SELECT * INTO run FROM project_runs r WHERE r.project_id = wanted AND r.ended_at IS NULL;
    IF is_unclaimed(run) THEN
        PERFORM withdraw_run(run, 'stopped');
    ELSE
        UPDATE projects p SET state = :queue_target_of_stop WHERE p.project_id = wanted;
        PERFORM note_queue(wanted, 'stop');
    END IF;
END $$;

-- Whether no worker has taken the run's task yet. It is locked first, so that nobody takes it from here on: it is one
-- or the other.

CREATE FUNCTION is_unclaimed(run project_runs) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM tasks t WHERE t.task_id = run.task_id FOR NO KEY UPDATE;
    RETURN EXISTS (
        SELECT 1 FROM tasks t
        WHERE t.task_id = run.task_id AND t.life = run.life AND t.attempt = run.attempts_before
          AND t.status IN ('blocked', 'queued', 'retrying'));
END $$;

-- The run is closed first, so that the cancel of its task closes nothing.

CREATE FUNCTION withdraw_run(run project_runs, reason text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    notes jsonb[] := end_run(run.run_id, :run_target_of_withdraw, 'withdraw', NULL);
BEGIN
    PERFORM cancel_tasks(ARRAY[run.task_id], 'withdrawn');
    PERFORM finish_project(run.project_id, reason, NULL, notes);
END $$;

-- Closes a run, and its item with it, if the item has not been changed since. Returns what is to be noted of it.

CREATE FUNCTION end_run(wanted uuid, target text, change text, failure jsonb) RETURNS jsonb[] LANGUAGE plpgsql AS $$
DECLARE
    run  project_runs;
    item project_items;
BEGIN
    UPDATE project_runs r SET state = target, ended_at = clock_timestamp(), error = failure
    WHERE r.run_id = wanted AND r.ended_at IS NULL RETURNING * INTO run;
    UPDATE project_items i SET
        state = CASE target WHEN 'completed' THEN 'done' WHEN 'withdrawn' THEN 'waiting' ELSE 'failed' END,
        position = CASE WHEN target = 'withdrawn' AND i.item_id IS DISTINCT FROM first_waiting(run.project_id)
                        THEN head_of(run.project_id) ELSE i.position END,
        updated_at = run.ended_at
    WHERE i.item_id = run.item_id AND i.last_run_id = run.run_id RETURNING * INTO item;
    IF NOT FOUND THEN RETURN ARRAY[note_of_run(run, change)]; END IF;
    RETURN ARRAY[
        note_of_run(run, change),
        note_of_item(
            item, CASE target WHEN 'completed' THEN 'fulfil' WHEN 'withdrawn' THEN 'return' ELSE 'fail' END)];
END $$;

CREATE FUNCTION finish_project(finished uuid, reason text, failure jsonb, before jsonb[])
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE projects p SET
        state = :queue_target_of_finish, current_run_id = NULL, forced_at = NULL, stopped_at = clock_timestamp(),
        stop_reason = reason, last_error = coalesce(failure, p.last_error)
    WHERE p.project_id = finished AND p.state IN :queue_sources_of_finish;
    PERFORM note_queue(finished, 'finish', before);
    PERFORM write_event('schedule', last.schedule_id, 'finish') FROM (
        SELECT r.schedule_id FROM project_runs r WHERE r.project_id = finished ORDER BY r.run_id DESC LIMIT 1
    ) AS last WHERE last.schedule_id IS NOT NULL;
END $$;

-- Archives a project that stands still; again changes nothing.

CREATE FUNCTION archive_project(wanted uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    project projects;
BEGIN
    SELECT * INTO project FROM projects p WHERE p.project_id = wanted FOR NO KEY UPDATE;
    IF project.state <> 'idle' THEN RETURN 'project-running'; END IF;
    IF project.archived_at IS NULL THEN
        UPDATE projects p SET archived_at = clock_timestamp() WHERE p.project_id = wanted;
        PERFORM note_queue(wanted, 'archive');
    END IF;
    RETURN NULL;
END $$;
