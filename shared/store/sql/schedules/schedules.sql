-- Schedules are made and changed here; what becomes of their due times is in `fire_schedules.sql`. Each function locks
-- the schedule before anything else (docs/lock_order.md); nobody who has not writes a row of `schedule_runs`.

-- Makes a schedule, unless its owner has one of that name.

CREATE FUNCTION create_schedule(wanted jsonb) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    fresh uuid;
BEGIN
    INSERT INTO schedules (
        schedule_id, user_id, name, cron, every_seconds, timezone, target, kind, prepared, overlap, catch_up,
        catch_up_window_seconds, jitter_seconds, pause_after_failures, anchor_at, last_due_at, next_due_at, next_at,
        declared_by, created_at)
    SELECT s.schedule_id, s.user_id, s.name, s.cron, s.every_seconds, s.timezone, s.target, s.kind, s.prepared,
           s.overlap, s.catch_up, s.catch_up_window_seconds, s.jitter_seconds, s.pause_after_failures, s.anchor_at,
           s.last_due_at, s.next_due_at, s.next_at, s.declared_by, s.last_due_at
    FROM jsonb_populate_record(NULL::schedules, wanted) AS s
    ON CONFLICT (user_id, name) WHERE deleted_at IS NULL DO NOTHING RETURNING schedule_id INTO fresh;
    IF fresh IS NOT NULL THEN
        PERFORM note_schedule(fresh, 'create', '{}'), call_for_schedules(fresh);
    END IF;
    RETURN fresh;
END $$;

-- Writes one row of a schedule's history. The caller has locked it.

CREATE FUNCTION note_schedule(noted uuid, type text, data jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    number int;
BEGIN
    UPDATE schedules s SET last_seq = s.last_seq + 1, updated_at = clock_timestamp() WHERE s.schedule_id = noted
    RETURNING s.last_seq INTO number;
    INSERT INTO schedule_events (schedule_id, seq, type, data) VALUES (noted, number, type, data);
END $$;

-- A janitor looks when it has to wake next, and what has become of what the schedule had started.

CREATE FUNCTION call_for_schedules(called uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('windlass_schedules', called::text);
END $$;

-- Changes a schedule as it was seen: its fields, or that it is paused, resumed or deleted. What was due until now and
-- has no row gets one, as missed. Somebody who was quicker has to be looked at first: then it says `stale`.

CREATE FUNCTION change_schedule(id uuid, seen jsonb, change text, fields jsonb, missed jsonb)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    old schedules;
    new schedules;
BEGIN
    SELECT * INTO old FROM schedules s WHERE s.schedule_id = id FOR NO KEY UPDATE;
    IF NOT is_as_seen(old, seen) THEN RETURN 'stale'; END IF;
    new := jsonb_populate_record(old, fields);
    BEGIN
        UPDATE schedules s SET
            name = new.name, cron = new.cron, every_seconds = new.every_seconds, timezone = new.timezone,
            target = new.target, kind = new.kind, prepared = new.prepared, overlap = new.overlap,
            catch_up = new.catch_up, catch_up_window_seconds = new.catch_up_window_seconds,
            jitter_seconds = new.jitter_seconds, pause_after_failures = new.pause_after_failures, state = new.state,
            pause_reason = new.pause_reason, pause_note = new.pause_note, failures = new.failures,
            anchor_at = new.anchor_at,
            last_due_at = greatest(old.last_due_at, new.last_due_at), next_due_at = new.next_due_at,
            next_at = new.next_at, declared_by = new.declared_by, version = old.version + 1,
            deleted_at = CASE WHEN change = 'delete' THEN clock_timestamp() END
        WHERE s.schedule_id = id;
    EXCEPTION WHEN unique_violation THEN
        RETURN 'name-taken';
    END;
    PERFORM miss_runs(id, missed);
    IF new.state = 'paused' OR change = 'delete' THEN
        PERFORM drop_waiting(id, CASE change WHEN 'delete' THEN 'deleted' ELSE 'paused' END);
    END IF;
    PERFORM note_schedule(
        id, change, jsonb_strip_nulls(jsonb_build_object(
            'state', new.state, 'reason', new.pause_reason, 'note', new.pause_note)));
    PERFORM call_for_schedules(id);
    RETURN NULL;
END $$;

-- Whether nobody has changed it or fired it since: of two who have planned the same, one is right. What the next time
-- is may be seen differently by two whose time zone data differ.

CREATE FUNCTION is_as_seen(schedule schedules, seen jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT schedule.deleted_at IS NULL AND schedule.version = (seen ->> 'version')::int
       AND schedule.last_due_at = (seen ->> 'last_due_at')::timestamptz
       AND schedule.next_at IS NOT DISTINCT FROM (seen ->> 'seen_next_at')::timestamptz
$$;

CREATE FUNCTION miss_runs(id uuid, missed jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO schedule_runs (schedule_id, due_at, outcome, reason, cause, count, until)
    SELECT id, m.due_at, 'missed', m.missed_because, 'time', m.count, m.until
    FROM jsonb_to_recordset(missed) AS m(due_at timestamptz, missed_because text, count int, until timestamptz)
    ON CONFLICT DO NOTHING;
END $$;

CREATE FUNCTION drop_waiting(id uuid, because text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE schedule_runs r SET outcome = 'missed', reason = because, start = NULL
    WHERE r.schedule_id = id AND r.outcome = 'waiting';
END $$;

-- Stops a schedule for a reason of our own. What is due meanwhile gets its rows when it goes on.

CREATE FUNCTION halt_schedule(id uuid, because text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE schedules s SET
        state = 'paused', pause_reason = because, pause_note = NULL, next_at = NULL, next_due_at = NULL,
        version = s.version + 1
    WHERE s.schedule_id = id;
    PERFORM drop_waiting(id, 'paused'),
            note_schedule(id, 'pause', jsonb_build_object('state', 'paused', 'reason', because));
END $$;

-- Whether its owner still has a key to act by: whoever has none starts nothing, neither by hand nor by a schedule.

CREATE FUNCTION has_a_key(owner text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT owner = 'system' OR EXISTS (
        SELECT 1 FROM api_keys k
        WHERE k.user_id = owner AND k.role <> 'viewer' AND k.revoked_at IS NULL
          AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp()))
$$;

-- After a key was revoked: the schedules of an owner who has none left stand still, and say why. Returns how many.

CREATE FUNCTION halt_keyless(owner text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    halted int;
BEGIN
    IF has_a_key(owner) THEN RETURN 0; END IF;
    PERFORM 1 FROM schedules s WHERE s.user_id = owner AND s.state = 'active' AND s.deleted_at IS NULL
    ORDER BY s.schedule_id FOR NO KEY UPDATE;
    SELECT count(*) INTO halted FROM (
        SELECT halt_schedule(s.schedule_id, 'owner-has-no-key') FROM schedules s
        WHERE s.user_id = owner AND s.state = 'active' AND s.deleted_at IS NULL OFFSET 0) AS each;
    RETURN halted;
END $$;

-- What has happened to schedules and nobody has said in a log yet: each is given to one who asks, once.

CREATE FUNCTION say_schedule_events(at_most int)
RETURNS TABLE (schedule_id uuid, seq int, type text, data jsonb, name text, user_id text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH unsaid AS (
        SELECT e.schedule_id, e.seq FROM schedule_events e WHERE NOT e.said
        ORDER BY e.schedule_id, e.seq LIMIT at_most FOR UPDATE SKIP LOCKED
    )
    UPDATE schedule_events e SET said = true FROM unsaid u, schedules s
    WHERE e.schedule_id = u.schedule_id AND e.seq = u.seq AND s.schedule_id = e.schedule_id
    RETURNING e.schedule_id, e.seq, e.type::text, e.data, s.name::text, s.user_id::text;
END $$;
