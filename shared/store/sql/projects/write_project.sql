-- Writes what one turn of a project changed, in one call: runs that ended or got another item, runs that were opened,
-- their items, the queue, and the events, numbered without gaps. The caller has locked the project.

CREATE FUNCTION write_project(wanted uuid, changes jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := changes ->> 'at';
    number int;
BEGIN
    UPDATE project_runs r SET
        state = c.state, ended_at = c.ended_at, error = c.error, receipt = c.receipt, task_id = c.task_id,
        life = c.life, attempts_before = c.attempts_before, item_id = c.item_id, named = c.named
    FROM jsonb_to_recordset(changes -> 'runs') AS c(
        run_id uuid, state text, ended_at timestamptz, error jsonb, receipt jsonb, task_id uuid, life int,
        attempts_before int, item_id uuid, named boolean)
    WHERE r.run_id = c.run_id;
    INSERT INTO project_runs (
        run_id, project_id, item_id, task_id, life, attempts_before, mode, named, state, started_at, ended_at, error,
        revived_from, schedule_id)
    SELECT o.run_id, wanted, o.item_id, o.task_id, o.life, o.attempts_before, o.mode, o.named, o.state, o.started_at,
           o.ended_at, o.error, o.revived_from, o.schedule_id
    FROM jsonb_to_recordset(changes -> 'opened') AS o(
        run_id uuid, item_id uuid, task_id uuid, life int, attempts_before int, mode text, named boolean, state text,
        started_at timestamptz, ended_at timestamptz, error jsonb, revived_from uuid, schedule_id uuid);
    UPDATE project_items i SET
        state = c.state, position = c.position, last_run_id = c.last_run_id, updated_at = moment
    FROM jsonb_to_recordset(changes -> 'items') AS c(item_id uuid, state text, position numeric, last_run_id uuid)
    WHERE i.item_id = c.item_id;
    UPDATE projects p SET
        state = q.state, mode = q.mode, current_run_id = q.current_run_id, forced_at = q.forced_at,
        started_at = q.started_at, stopped_at = q.stopped_at, stop_reason = q.stop_reason, last_error = q.last_error,
        archived_at = q.archived_at, last_seq = p.last_seq + jsonb_array_length(changes -> 'events'),
        updated_at = moment
    FROM jsonb_to_record(changes -> 'queue') AS q(
        state text, mode text, current_run_id uuid, forced_at timestamptz, started_at timestamptz,
        stopped_at timestamptz, stop_reason text, last_error jsonb, archived_at timestamptz)
    WHERE p.project_id = wanted RETURNING p.last_seq INTO number;
    INSERT INTO project_events (project_id, seq, type, at, data)
    SELECT wanted, number - jsonb_array_length(changes -> 'events') + e.place, e.event ->> 'type', moment,
           e.event -> 'data'
    FROM jsonb_array_elements(changes -> 'events') WITH ORDINALITY AS e(event, place);
    PERFORM pg_notify('windlass_events', wanted::text);
END $$;
