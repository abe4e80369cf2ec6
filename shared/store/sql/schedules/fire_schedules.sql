-- What becomes of the times that schedules are due. The planner has said which have come (shared/schedules/planner.py);
-- here each gets its row, whose key is the fence: whatever number of janitors plan the same, one writes it, and what it
-- starts is committed with it. `moment` is what the planner took for the present.

-- Those of many schedules, all of them locked before anything else; one that somebody else has is left to that one.

CREATE FUNCTION fire_schedules(firings jsonb, moment timestamptz)
RETURNS TABLE (schedule_id uuid, due_at timestamptz, outcome text, reason text, kind text, is_new boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    free   uuid[];
    firing jsonb;
BEGIN
    free := ARRAY(
        SELECT s.schedule_id FROM schedules s
        WHERE s.schedule_id IN (SELECT (f.it ->> 'schedule_id')::uuid FROM jsonb_array_elements(firings) AS f(it))
        ORDER BY s.schedule_id FOR NO KEY UPDATE SKIP LOCKED);
    FOR firing IN SELECT f.it FROM jsonb_array_elements(firings) AS f(it) LOOP
        IF (firing ->> 'schedule_id')::uuid = ANY (free) THEN
            RETURN QUERY SELECT f.* FROM fire_schedule(firing, 'time', moment) AS f;
        END IF;
    END LOOP;
END $$;

-- Those of one schedule: because their time has come, because somebody asks for one now, or for those of a time that is
-- past. Nothing, if it is not as the planner saw it.

CREATE FUNCTION fire_schedule(firing jsonb, cause text, moment timestamptz)
RETURNS TABLE (schedule_id uuid, due_at timestamptz, outcome text, reason text, kind text, is_new boolean)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    id       uuid := firing ->> 'schedule_id';
    schedule schedules;
    planned  record;
BEGIN
    SELECT * INTO schedule FROM schedules s WHERE s.schedule_id = id FOR NO KEY UPDATE;
    IF schedule.deleted_at IS NOT NULL OR schedule.version <> (firing ->> 'version')::int
       OR cause = 'time' AND (NOT is_as_seen(schedule, firing) OR schedule.state <> 'active')
    THEN
        RETURN;
    END IF;
    PERFORM settle_runs(id);
    FOR planned IN
        SELECT p.* FROM jsonb_to_recordset(firing -> 'occurrences')
            AS p(due_at timestamptz, missed_because text, count int, until timestamptz, start jsonb)
        ORDER BY p.due_at
    LOOP
        IF planned.missed_because IS NOT NULL THEN
            PERFORM miss_runs(id, jsonb_build_array(to_jsonb(planned)));
        ELSE
            PERFORM decide_run(id, planned.due_at, cause, planned.start);
        END IF;
    END LOOP;
    IF cause = 'time' THEN
        UPDATE schedules s SET
            last_due_at = (firing ->> 'reached')::timestamptz,
            next_due_at = CASE s.state WHEN 'active' THEN (firing ->> 'next_due_at')::timestamptz END,
            next_at = CASE s.state WHEN 'active' THEN (firing ->> 'next_at')::timestamptz END
        WHERE s.schedule_id = id;
    END IF;
    RETURN QUERY
    SELECT r.schedule_id, r.due_at, r.outcome::text, r.reason::text, schedule.kind::text, r.decided_at >= now()
    FROM schedule_runs r JOIN jsonb_to_recordset(firing -> 'occurrences') AS p(due_at timestamptz) USING (due_at)
    WHERE r.schedule_id = id ORDER BY r.due_at;
END $$;

-- One due time, that is to be started if nothing is in its way. What has been started once is never started again; a
-- backfill may start what was missed, skipped or refused. A start that fails is undone, and the row says why.

CREATE FUNCTION decide_run(id uuid, due timestamptz, why text, wanted jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM schedule_runs r
    WHERE r.schedule_id = id AND r.due_at = due
      AND (why <> 'backfill' OR r.until IS NOT NULL OR r.outcome NOT IN ('missed', 'skipped', 'refused'));
    IF NOT FOUND THEN
        PERFORM try_run(id, due, why, wanted, false);
    END IF;
END $$;

-- One that `has_waited` is asked for its owner's key alone: nothing is in its way any more.

CREATE FUNCTION try_run(id uuid, due timestamptz, why text, wanted jsonb, has_waited boolean) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    schedule schedules;
    verdict  record;
BEGIN
    SELECT * INTO schedule FROM schedules s WHERE s.schedule_id = id;
    BEGIN
        SELECT v.outcome, v.reason INTO verdict
        FROM verdict_on(schedule, due, CASE WHEN has_waited THEN 'backfill' ELSE why END) AS v;
        IF verdict.outcome = 'started' THEN
            PERFORM start_run(schedule, due, why, wanted);
        ELSE
            PERFORM write_run(id, due, why, verdict.outcome, verdict.reason, wanted);
        END IF;
    EXCEPTION
        WHEN transaction_rollback OR lock_not_available OR operator_intervention OR insufficient_resources THEN
            RAISE;
        WHEN OTHERS THEN
            PERFORM write_run(id, due, why, 'refused', SQLERRM, NULL);
    END;
    IF EXISTS (
        SELECT 1 FROM schedule_runs r WHERE r.schedule_id = id AND r.due_at = due AND r.outcome = 'refused')
    THEN
        PERFORM count_failure(id, due);
        IF NOT has_a_key(schedule.user_id) THEN
            PERFORM halt_schedule(id, 'owner-has-no-key') FROM schedules s
            WHERE s.schedule_id = id AND s.state = 'active';
        END IF;
    END IF;
END $$;

CREATE FUNCTION write_run(id uuid, due timestamptz, why text, became text, because text, wanted jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO schedule_runs (schedule_id, due_at, outcome, reason, cause, start)
    VALUES (id, due, became, because, why, CASE became WHEN 'waiting' THEN wanted END)
    ON CONFLICT (schedule_id, due_at) DO UPDATE
    SET outcome = excluded.outcome, reason = excluded.reason, cause = excluded.cause, start = excluded.start,
        decided_at = clock_timestamp();
END $$;

-- Whether a due time may be started, by what was started before it. Whoever asks for those of a time that is past wants
-- all of them, and is asked for no more. What is to be cancelled has verifiably ended before the next one starts.

CREATE FUNCTION verdict_on(schedule schedules, due timestamptz, why text, OUT outcome text, OUT reason text)
LANGUAGE plpgsql AS $$
DECLARE
    waits boolean;
BEGIN
    outcome := 'started';
    IF schedule.state = 'paused' AND why = 'time' THEN
        outcome := 'missed'; reason := 'paused';
    ELSIF NOT has_a_key(schedule.user_id) THEN
        outcome := 'refused'; reason := 'owner-has-no-key';
    ELSIF why = 'backfill' OR schedule.overlap = 'allow' THEN
        RETURN;
    ELSE
        waits := EXISTS (
            SELECT 1 FROM schedule_runs r WHERE r.schedule_id = schedule.schedule_id AND r.outcome = 'waiting');
        IF NOT waits AND NOT EXISTS (SELECT 1 FROM live_runs(schedule.schedule_id)) THEN
            RETURN;
        ELSIF schedule.overlap = 'skip' THEN
            outcome := 'skipped'; reason := 'previous-live';
        ELSIF schedule.overlap = 'queue-one' THEN
            outcome := CASE WHEN waits THEN 'skipped' ELSE 'waiting' END;
            reason := CASE WHEN waits THEN 'another-waits' ELSE 'previous-live' END;
        ELSE
            UPDATE schedule_runs r SET outcome = 'skipped', reason = 'superseded', start = NULL
            WHERE r.schedule_id = schedule.schedule_id AND r.outcome = 'waiting';
            PERFORM cancel_runs(schedule.schedule_id);
            IF EXISTS (SELECT 1 FROM live_runs(schedule.schedule_id)) THEN
                outcome := 'waiting'; reason := 'previous-stopping';
            END IF;
        END IF;
    END IF;
END $$;

-- The runs of a schedule whose work lives, whatever their rows say: the last one's task may have been revived since. A
-- project's run is live as long as its project runs what the schedule has started, a loop with all that follows.

CREATE FUNCTION live_runs(id uuid)
RETURNS TABLE (due_at timestamptz, task_id uuid, workflow_id uuid, project_id uuid) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT r.due_at, r.task_id, r.workflow_id, r.project_id FROM schedule_runs r
    WHERE r.schedule_id = id AND r.outcome = 'started' AND r.ended_at IS NULL
      AND end_of(r.schedule_id, r.task_id, r.workflow_id, r.project_id) IS NULL
    UNION
    SELECT r.due_at, r.task_id, r.workflow_id, r.project_id
    FROM schedules s JOIN schedule_runs r ON r.schedule_id = s.schedule_id AND r.due_at = s.last_started_at
    WHERE s.schedule_id = id AND end_of(r.schedule_id, r.task_id, r.workflow_id, r.project_id) IS NULL;
END $$;

-- How what was started has ended; null while it lives. What is nowhere any more has ended as well.

CREATE FUNCTION end_of(of_schedule uuid, of_task uuid, of_workflow uuid, of_project uuid) RETURNS text
LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF of_task IS NOT NULL THEN
        RETURN CASE WHEN t.completed_at IS NULL AND t.task_id IS NOT NULL THEN NULL ELSE coalesce(t.status, 'lost') END
        FROM (SELECT of_task AS wanted) AS one LEFT JOIN tasks t ON t.task_id = one.wanted;
    ELSIF of_workflow IS NOT NULL THEN
        RETURN CASE WHEN w.status IN ('running', 'escalated') THEN NULL ELSE coalesce(w.status, 'lost') END
        FROM (SELECT of_workflow AS wanted) AS one LEFT JOIN workflows w ON w.workflow_id = one.wanted;
    END IF;
    RETURN CASE WHEN p.state <> 'idle' AND current.schedule_id = of_schedule THEN NULL
                ELSE coalesce(p.stop_reason, 'lost') END
    FROM (SELECT of_project AS wanted) AS one LEFT JOIN projects p ON p.project_id = one.wanted
    LEFT JOIN project_runs current ON current.run_id = p.current_run_id;
END $$;

CREATE FUNCTION cancel_runs(id uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    live record;
BEGIN
    -- All in the order of locks: projects, workflows, tasks.
    FOR live IN SELECT l.* FROM live_runs(id) AS l ORDER BY l.project_id, l.workflow_id, l.task_id LOOP
        IF live.task_id IS NOT NULL THEN
            PERFORM cancel_tasks(ARRAY[live.task_id], 'schedule');
        ELSIF live.workflow_id IS NOT NULL THEN
            PERFORM cancel_workflow(live.workflow_id);
        ELSE
            PERFORM force_stop_project(live.project_id);
        END IF;
    END LOOP;
END $$;

-- Starts what a due time is for, and writes its row. A project that somebody else has started is left alone.

CREATE FUNCTION start_run(schedule schedules, due timestamptz, why text, wanted jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    refused text;
    made    uuid := wanted ->> 'task_id';
    flow    uuid := wanted #>> '{workflow,workflow_id}';
    project uuid := wanted ->> 'project_id';
    run     uuid;
BEGIN
    IF schedule.kind = 'task' THEN
        SELECT s.refusal INTO refused FROM store_tasks(jsonb_build_array(wanted)) AS s;
        UPDATE tasks t SET schedule_id = schedule.schedule_id WHERE t.task_id = made;
    ELSIF schedule.kind = 'workflow' THEN
        PERFORM store_workflow(flow, wanted -> 'workflow', wanted -> 'nodes', wanted -> 'submissions');
        UPDATE workflows w SET schedule_id = schedule.schedule_id WHERE w.workflow_id = flow;
    ELSIF NOT EXISTS (
        SELECT 1 FROM projects p
        WHERE p.project_id = project AND (schedule.user_id = 'system' OR p.user_id = schedule.user_id))
    THEN
        refused := 'project-not-found';
    ELSE
        SELECT s.refusal, CASE WHEN s.refusal IS NULL THEN s.run_id END INTO refused, run
        FROM start_project(project, wanted ->> 'mode', NULL) AS s;
        UPDATE project_runs r SET schedule_id = schedule.schedule_id WHERE r.run_id = run;
    END IF;
    IF refused IS NOT NULL THEN
        PERFORM write_run(
            schedule.schedule_id, due, why,
            CASE WHEN refused IN ('queue-already-running', 'backlog-empty') THEN 'skipped' ELSE 'refused' END,
            refused, NULL);
        RETURN;
    END IF;
    INSERT INTO schedule_runs (schedule_id, due_at, outcome, cause, task_id, workflow_id, project_id, run_id)
    VALUES (
        schedule.schedule_id, due, 'started', why, CASE schedule.kind WHEN 'task' THEN made END, flow,
        CASE schedule.kind WHEN 'project' THEN project END, run)
    ON CONFLICT (schedule_id, due_at) DO UPDATE
    SET outcome = excluded.outcome, reason = NULL, cause = excluded.cause, task_id = excluded.task_id,
        workflow_id = excluded.workflow_id, project_id = excluded.project_id, run_id = excluded.run_id, start = NULL,
        decided_at = clock_timestamp();
    UPDATE schedules s SET last_started_at = greatest(s.last_started_at, due)
    WHERE s.schedule_id = schedule.schedule_id;
END $$;
