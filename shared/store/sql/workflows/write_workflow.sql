-- Writes what one turn of a workflow changed: its counts, from which Postgres derives its status, and its events,
-- numbered without gaps. Ends and escalations are published for webhooks, and its schedule gets a row about an end. The
-- caller has locked the workflow.

CREATE FUNCTION write_workflow(wanted uuid, changes jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz := changes ->> 'at';
    number  int;
    present text;
BEGIN
    UPDATE workflows w SET
        total = c.live + c.completed + c.dead + c.cancelled, live = c.live, completed = c.completed, dead = c.dead,
        cancelled = c.cancelled, failures = c.failures, cancel_requested = c.cancel_requested,
        resumed_at = c.resumed_at, completed_at = c.completed_at, updated_at = moment,
        last_seq = w.last_seq + jsonb_array_length(changes -> 'events')
    FROM jsonb_to_record(changes) AS c(
        live int, completed int, dead int, cancelled int, failures int, cancel_requested boolean,
        resumed_at timestamptz, completed_at timestamptz)
    WHERE w.workflow_id = wanted RETURNING w.last_seq, w.status INTO number, present;
    INSERT INTO workflow_events (workflow_id, seq, type, at, data)
    SELECT wanted, number - jsonb_array_length(changes -> 'events') + e.place, e.event ->> 'type', moment,
           e.event -> 'data'
    FROM jsonb_array_elements(changes -> 'events') WITH ORDINALITY AS e(event, place);
    PERFORM publish_workflow(wanted, number - jsonb_array_length(changes -> 'events') + e.place, e.event -> 'data')
    FROM jsonb_array_elements(changes -> 'events') WITH ORDINALITY AS e(event, place)
    WHERE e.event #>> '{data,status}' NOT IN ('running', e.event #>> '{data,was}');
    IF jsonb_array_length(changes -> 'events') > 0 AND present <> 'running' THEN
        PERFORM write_event('schedule', w.schedule_id, w.status) FROM workflows w
        WHERE w.workflow_id = wanted AND w.schedule_id IS NOT NULL AND w.status <> 'escalated';
    END IF;
    PERFORM wake_streams(ARRAY[wanted]);
END $$;

-- Cancels, holds or releases a page of a workflow's tasks. If there are more, an outbox row makes the orchestrator
-- continue. A cancel begins with the last tasks: a dependent is then cancelled, too, and not buried. Returns the tasks
-- that ended, counted.

CREATE FUNCTION move_page(wanted uuid, operation text, at_most int) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    page uuid[];
    over uuid[] := '{}';
BEGIN
    IF operation = 'cancel' THEN
        page := ARRAY(
            SELECT t.task_id FROM tasks t
            WHERE t.workflow_id = wanted::text AND t.status IN ('blocked', 'queued', 'running', 'retrying')
              AND t.group_id = wanted AND NOT t.cancel_requested
            ORDER BY t.task_id DESC LIMIT at_most);
        SELECT c.ended INTO over FROM cancel_tasks(page) AS c;
    ELSIF operation = 'hold' THEN
        page := ARRAY(
            SELECT t.task_id FROM tasks t
            WHERE t.workflow_id = wanted::text AND t.status IN ('blocked', 'queued', 'running', 'retrying')
              AND t.status <> 'running' AND t.group_id = wanted AND NOT t.job_open AND 'workflow' <> ALL (t.held)
            ORDER BY t.task_id LIMIT at_most);
        PERFORM hold_tasks(page, 'workflow');
    ELSE
        page := held_of(wanted, at_most);
        PERFORM release_tasks(page, 'workflow');
    END IF;
    IF cardinality(page) = at_most THEN
        PERFORM write_event('workflow', wanted, 'continue');
    END IF;
    RETURN counts_of(over);
END $$;

CREATE FUNCTION held_of(wanted uuid, at_most int) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT t.task_id FROM tasks t
        WHERE t.workflow_id = wanted::text AND t.status IN ('blocked', 'queued', 'running', 'retrying')
          AND 'workflow' = ANY (t.held)
        ORDER BY t.task_id LIMIT at_most);
END $$;

-- The tasks of a workflow that are dead by their own failure, and in the mode `failed-and-downstream` also those that
-- ended behind them without completing.

CREATE FUNCTION failed_of(wanted uuid, mode text) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        WITH RECURSIVE failed(task_id) AS (
            SELECT t.task_id FROM tasks t
            WHERE t.workflow_id = wanted::text AND t.status = 'dead' AND t.group_id = wanted
              AND t.error ->> 'type' <> 'DependencyFailed'
            UNION
            SELECT d.child_id FROM failed f JOIN task_dependencies d ON d.parent_id = f.task_id
            WHERE mode = 'failed-and-downstream'
        )
        SELECT t.task_id FROM failed f JOIN tasks t USING (task_id)
        WHERE t.status IN :sources_of_revive AND t.workflow_id = wanted::text);
END $$;
