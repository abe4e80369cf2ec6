-- What has become of what schedules have started. Nobody who ends a task, a workflow or a project waits for a schedule,
-- or writes to it: the end calls the janitor, which looks at what is in the rows, and looks all the same every minute.

CREATE FUNCTION tell_schedule(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM call_for_schedules(t.schedule_id) FROM jsonb_to_recordset(moves) AS m(task_id uuid, status text)
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
    WHERE m.status IN ('completed', 'dead', 'cancelled') AND t.schedule_id IS NOT NULL;
END $$;

-- Writes down what has ended, and starts what has waited for it. Returns what became of that, and what it was.

CREATE FUNCTION settle_schedule(id uuid)
RETURNS TABLE (
    schedule_id uuid, due_at timestamptz, outcome text, reason text, kind text, is_new boolean, start jsonb
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    waiting schedule_runs;
BEGIN
    PERFORM 1 FROM schedules s WHERE s.schedule_id = id FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    PERFORM settle_runs(id);
    SELECT * INTO waiting FROM schedule_runs r WHERE r.schedule_id = id AND r.outcome = 'waiting';
    IF NOT FOUND OR EXISTS (SELECT 1 FROM live_runs(id)) THEN RETURN; END IF;
    PERFORM try_run(id, waiting.due_at, waiting.cause, waiting.start, true);
    RETURN QUERY
    SELECT r.schedule_id, r.due_at, r.outcome::text, r.reason::text, s.kind::text, true, waiting.start
    FROM schedule_runs r JOIN schedules s USING (schedule_id)
    WHERE r.schedule_id = id AND r.due_at = waiting.due_at;
END $$;

CREATE FUNCTION settle_runs(id uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    over record;
BEGIN
    FOR over IN
        SELECT r.due_at, e.ended_as FROM schedule_runs r
        CROSS JOIN LATERAL (
            SELECT end_of(r.schedule_id, r.task_id, r.workflow_id, r.project_id) AS ended_as OFFSET 0) AS e
        WHERE r.schedule_id = id AND r.outcome = 'started' AND r.ended_at IS NULL AND e.ended_as IS NOT NULL
        ORDER BY r.due_at
    LOOP
        UPDATE schedule_runs r SET ended_at = clock_timestamp(), ended_as = over.ended_as
        WHERE r.schedule_id = id AND r.due_at = over.due_at;
        IF over.ended_as IN ('dead', 'failed', 'lost') THEN
            PERFORM count_failure(id, over.due_at);
        ELSIF over.ended_as IN ('completed', 'finished') THEN
            UPDATE schedules s SET failures = 0 WHERE s.schedule_id = id AND s.failures > 0;
        END IF;
    END LOOP;
END $$;

-- One more failure in a row, told as an event, and to the endpoints that hear of it; after so many the schedule stands
-- still.

CREATE FUNCTION count_failure(id uuid, of_run timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    schedule schedules;
    number   int;
BEGIN
    UPDATE schedules s SET failures = s.failures + 1 WHERE s.schedule_id = id RETURNING * INTO schedule;
    number := schedule.last_seq + 1;
    PERFORM note_schedule(id, 'failed', jsonb_strip_nulls(jsonb_build_object(
        'due_at', r.due_at, 'outcome', r.outcome, 'reason', r.reason, 'ended_as', r.ended_as, 'task_id', r.task_id,
        'workflow_id', r.workflow_id, 'project_id', r.project_id, 'run_id', r.run_id, 'failures', schedule.failures)))
    FROM schedule_runs r WHERE r.schedule_id = id AND r.due_at = of_run;
    IF schedule.failures >= schedule.pause_after_failures AND schedule.state = 'active' THEN
        PERFORM halt_schedule(id, 'failures');
    END IF;
    PERFORM tell_of_schedule(id, of_run, number);
END $$;

-- Filters take it by what it starts.

CREATE FUNCTION tell_of_schedule(id uuid, of_run timestamptz, number int) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_event(
        'schedule.failed', s.schedule_id::text, number, e.at, s.user_id,
        jsonb_build_object(
            'project_id', r.project_id, 'workflow_id', r.workflow_id, 'actor', s.prepared -> 'actor',
            'tags', coalesce(s.prepared -> 'tags', s.prepared #> '{workflow,tags}', '[]')),
        jsonb_build_object(
            'schedule_id', s.schedule_id, 'name', s.name, 'user_id', s.user_id, 'kind', s.kind,
            'due_at', utc(r.due_at), 'outcome', r.outcome, 'reason', left(r.reason, 1000), 'ended_as', r.ended_as,
            'task_id', r.task_id, 'workflow_id', r.workflow_id, 'project_id', r.project_id, 'run_id', r.run_id,
            'failures', s.failures, 'state', s.state, 'pause_reason', s.pause_reason, 'seq', number))
    FROM schedules s
    JOIN schedule_runs r ON r.schedule_id = s.schedule_id AND r.due_at = of_run
    JOIN schedule_events e ON e.schedule_id = s.schedule_id AND e.seq = number
    WHERE s.schedule_id = id;
END $$;

-- The schedules of which something has ended, or may be started, and nobody has looked since: mostly there are none.

CREATE FUNCTION unsettled_schedules(at_most int) RETURNS TABLE (schedule_id uuid) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT DISTINCT r.schedule_id FROM schedule_runs r
    WHERE r.outcome = 'started' AND r.ended_at IS NULL
      AND end_of(r.schedule_id, r.task_id, r.workflow_id, r.project_id) IS NOT NULL
       OR r.outcome = 'waiting' AND NOT EXISTS (SELECT 1 FROM live_runs(r.schedule_id))
    LIMIT at_most;
END $$;
