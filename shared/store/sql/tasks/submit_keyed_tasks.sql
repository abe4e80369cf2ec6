-- Stores new tasks of which some have keys, and finds those that were submitted before. Each answer is the task that a
-- submission came to, in the order of the submissions, and whether it is an earlier one. A repeat under an idempotency
-- key changes nothing, so it is found before the dedupe keys are touched; a new idempotency key whose dedupe key finds
-- an earlier task stands for that task from then on. The keys are locked before any task is.
-- What is refused is raised as far as the block that takes the keys back, and returned from there: further up it would
-- stand in the server's log as if something were broken.

CREATE FUNCTION submit_keyed_tasks(submissions jsonb)
RETURNS TABLE (refusal text, missing text, deduplicated boolean, :columns_of_tasks) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    earlier jsonb;
BEGIN
    BEGIN
        earlier := store_keyed_tasks(submissions);
    EXCEPTION WHEN SQLSTATE 'WL404' OR SQLSTATE 'WL409' OR SQLSTATE 'WL422' THEN
        GET STACKED DIAGNOSTICS refusal = MESSAGE_TEXT, missing = PG_EXCEPTION_DETAIL;
        RETURN NEXT;
        RETURN;
    END;
    RETURN QUERY
    SELECT NULL, NULL, earlier ? (s.submission ->> 'task_id'), :each_of_tasks(t)
    FROM jsonb_array_elements(submissions) WITH ORDINALITY AS s(submission, place)
    JOIN tasks t ON t.task_id = coalesce(earlier ->> (s.submission ->> 'task_id'), s.submission ->> 'task_id')::uuid
    ORDER BY s.place;
END $$;

-- Returns which earlier task a submission came to, by the id of the submission, and nothing for the new ones.

CREATE FUNCTION store_keyed_tasks(submissions jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    earlier jsonb;
    fresh   jsonb;
    strange text;
    refused text;
BEGIN
    earlier := owners_of_keys(submissions, 'idempotency');
    fresh := without_owner(submissions, earlier);
    earlier := earlier || owners_of_keys(fresh, 'dedupe');
    fresh := without_owner(submissions, earlier);

    UPDATE submission_keys k SET task_id = (earlier ->> s.task_id)::uuid
    FROM jsonb_to_recordset(submissions) AS s(task_id text, user_id text, idempotency_key text)
    WHERE k.user_id = s.user_id AND k.kind = 'idempotency' AND k.key = s.idempotency_key
      AND k.task_id = s.task_id::uuid AND earlier ? s.task_id;

    IF jsonb_array_length(fresh) > 0 THEN
        SELECT s.missing, s.refusal INTO strange, refused FROM store_tasks(fresh) AS s;
        IF refused IS NOT NULL THEN
            RAISE EXCEPTION '%', refused USING ERRCODE = 'WL404', DETAIL = strange;
        END IF;
    END IF;
    RETURN earlier;
END $$;

-- Takes the keys of one kind that are free, and returns which earlier task has each of the others, by the id of the
-- submission. A key is free when nobody has it, when its time is over, or, of the dedupe kind, when its task died or
-- was cancelled. Free keys are taken in their order, so that no two calls wait for each other in a circle. A key that
-- another call is just taking is waited for, but not for long: that call may belong to a client that is frozen.

CREATE FUNCTION owners_of_keys(submissions jsonb, wanted_kind text)
RETURNS jsonb LANGUAGE plpgsql SET lock_timeout = '1s' AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    misuse bigint;
    owners jsonb;
BEGIN
    BEGIN
        INSERT INTO submission_keys AS k (user_id, kind, key, task_id, body_hash, expires_at)
        SELECT DISTINCT ON (w.user_id, w.key)
               w.user_id, wanted_kind, w.key, w.task_id, w.body_hash, moment + make_interval(secs => w.ttl_seconds)
        FROM wanted_keys(submissions, wanted_kind) w
        WHERE NOT EXISTS (
            SELECT 1 FROM submission_keys k
            WHERE k.user_id = w.user_id AND k.kind = wanted_kind AND k.key = w.key AND NOT is_free(k, moment))
        ORDER BY w.user_id, w.key, w.place
        ON CONFLICT (user_id, kind, key) DO UPDATE
        SET task_id = excluded.task_id, body_hash = excluded.body_hash, expires_at = excluded.expires_at
        WHERE is_free(k, moment);
    EXCEPTION WHEN lock_not_available THEN
        RAISE EXCEPTION 'key-in-flight' USING ERRCODE = 'WL409';
    END;

    -- By a later statement, which sees what the calls that were waited for have written.
    SELECT coalesce(jsonb_object_agg(w.task_id, k.task_id) FILTER (WHERE k.task_id <> w.task_id), '{}'),
           min(w.place) FILTER (WHERE k.body_hash <> w.body_hash)
    INTO owners, misuse
    FROM wanted_keys(submissions, wanted_kind) w
    JOIN submission_keys k ON k.user_id = w.user_id AND k.kind = wanted_kind AND k.key = w.key;
    IF misuse IS NOT NULL THEN
        RAISE EXCEPTION 'key-reused' USING ERRCODE = 'WL422';
    END IF;
    RETURN owners;
END $$;

CREATE FUNCTION wanted_keys(submissions jsonb, wanted_kind text)
RETURNS TABLE (place bigint, task_id uuid, user_id text, key text, body_hash bytea, ttl_seconds float)
LANGUAGE sql AS $$
    SELECT s.place, (s.it ->> 'task_id')::uuid, s.it ->> 'user_id', s.it ->> (wanted_kind || '_key'),
           CASE wanted_kind WHEN 'idempotency' THEN decode(s.it ->> 'body_hash', 'hex') END,
           coalesce((s.it ->> (wanted_kind || '_ttl_seconds'))::float, 86400)
    FROM jsonb_array_elements(submissions) WITH ORDINALITY AS s(it, place)
    WHERE s.it ->> (wanted_kind || '_key') IS NOT NULL
$$;

CREATE FUNCTION is_free(held submission_keys, moment timestamptz) RETURNS boolean LANGUAGE sql AS $$
    SELECT held.expires_at <= moment OR held.kind = 'dedupe' AND EXISTS (
        SELECT 1 FROM tasks t WHERE t.task_id = held.task_id AND t.status IN :sources_of_revive)
$$;

CREATE FUNCTION without_owner(submissions jsonb, owners jsonb) RETURNS jsonb LANGUAGE sql AS $$
    SELECT coalesce(jsonb_agg(s.it ORDER BY s.place), '[]')
    FROM jsonb_array_elements(submissions) WITH ORDINALITY AS s(it, place)
    WHERE NOT owners ? (s.it ->> 'task_id')
$$;
