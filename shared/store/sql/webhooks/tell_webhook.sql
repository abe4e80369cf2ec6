-- What happened, as endpoints are told it: for each one that is subscribed at that moment a delivery, and a `webhook`
-- task that carries it, in the transaction of what they tell. No endpoint's row is locked. What was told before is told
-- to nobody again.

-- The teller of the concern `webhook`. A task's moves come as all moves do; what else happened comes whole, with a type
-- of its own (`tell_event`).

CREATE FUNCTION tell_webhook(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM deliver_event(
        'task.' || m.status, t.task_id::text, m.life, m.seq, m.at, t.user_id,
        jsonb_build_object('project_id', t.project_id, 'workflow_id', t.workflow_id, 'actor', t.actor, 'tags', t.tags),
        told_of_task(t.task_id, m.life, m.seq::int, m.status),
        CASE WHEN m.status <> 'retrying' THEN t.webhook_id END, t.actor = ANY (silent_actors()))
    FROM jsonb_to_recordset(moves) AS m(task_id uuid, seq bigint, life int, status text, at timestamptz, type text)
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
    WHERE m.type IS NULL AND m.status IN ('completed', 'dead', 'cancelled', 'retrying');

    PERFORM deliver_event(e.type, e.subject, 1, e.seq, e.at, e.owner, e.about, e.data, NULL, false)
    FROM jsonb_to_recordset(moves)
        AS e(type text, subject text, seq bigint, at timestamptz, owner text, about jsonb, data jsonb)
    WHERE e.type IS NOT NULL;
END $$;

CREATE FUNCTION silent_actors() RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY[:silent_actors]
$$;

-- Something that is no move of a task. Whoever it happened to is moved all the same: what cannot be told is told later.
-- With nobody subscribed to anything it is one look at an index.

CREATE FUNCTION tell_event(
    type text, subject text, seq bigint, at timestamptz, owner text, about jsonb, data jsonb
) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    happened jsonb;
BEGIN
    IF NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.listens) THEN RETURN; END IF;
    happened := jsonb_build_object(
        'type', type, 'subject', subject, 'seq', seq, 'at', at, 'owner', owner, 'about', about, 'data', data);
    BEGIN
        PERFORM tell_webhook(jsonb_build_array(happened));
    EXCEPTION
        WHEN transaction_rollback OR lock_not_available OR operator_intervention OR insufficient_resources THEN
            RAISE;
        WHEN OTHERS THEN
            -- It is no task's: the id is that of nobody.
            INSERT INTO untold (subject, task_id, seq, move, error)
            VALUES ('webhook', '00000000-0000-0000-0000-000000000000', 0, happened,
                    SQLERRM || ' (' || SQLSTATE || ')');
    END;
END $$;

CREATE FUNCTION tell_asked(asked uuid[], moment timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_event(
        'approval.requested', t.task_id::text, t.last_seq, moment, t.user_id,
        jsonb_build_object('project_id', t.project_id, 'workflow_id', t.workflow_id, 'actor', t.actor, 'tags', t.tags),
        told_of_task(t.task_id, t.life, t.last_seq, t.status)
        || jsonb_build_object('message', t.approval -> 'message', 'expires_at', utc(t.ask_expires_at)))
    FROM tasks t WHERE t.task_id = ANY (asked) AND t.actor <> ALL (silent_actors());
END $$;

CREATE FUNCTION tell_of_project(noted uuid, change text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_event(
        CASE change WHEN 'start' THEN 'project.started' ELSE 'project.stopped' END, p.project_id::text, p.last_seq,
        p.updated_at, p.user_id, jsonb_build_object('project_id', p.project_id),
        jsonb_build_object(
            'project_id', p.project_id, 'name', p.name, 'user_id', p.user_id, 'state', p.state, 'mode', p.mode,
            'current_run_id', p.current_run_id, 'started_at', utc(p.started_at), 'stopped_at', utc(p.stopped_at),
            'stop_reason', p.stop_reason, 'last_error', told_error(p.last_error)))
    FROM projects p WHERE p.project_id = noted;
END $$;

CREATE FUNCTION tell_of_workflows(changed uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_event(
        'workflow.' || w.status, w.workflow_id::text, w.last_seq, w.updated_at, w.user_id,
        jsonb_build_object('workflow_id', w.workflow_id, 'tags', w.tags),
        jsonb_build_object(
            'workflow_id', w.workflow_id, 'name', w.name, 'user_id', w.user_id, 'status', w.status,
            'failures', w.failures, 'tags', w.tags, 'created_at', utc(w.created_at), 'seq', w.last_seq,
            'completed_at', utc(w.completed_at), 'counts', jsonb_build_object(
                'total', w.total, 'live', w.live, 'completed', w.completed, 'dead', w.dead,
                'cancelled', w.cancelled)))
    FROM workflows w
    WHERE w.workflow_id = ANY (changed) AND w.status IN ('completed', 'failed', 'escalated', 'cancelled');
END $$;

-- For those alone who hear of everything.

CREATE FUNCTION tell_of_provider(
    name_of text, kind text, moment timestamptz, why text, facts jsonb, number bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell_event(
        CASE kind WHEN 'pause' THEN 'provider.paused' WHEN 'resume' THEN 'provider.resumed'
                  WHEN 'open' THEN 'provider.breaker-opened' ELSE 'provider.breaker-closed' END,
        name_of, number, moment, NULL, '{}',
        jsonb_build_object('provider', name_of, 'reason', why, 'until', facts -> 'until'));
END $$;

-- Times as everywhere in JSON.

CREATE FUNCTION utc(moment timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;

-- What may leave the house of an error: neither where in the code it happened nor what a provider said in detail.

CREATE FUNCTION told_error(error jsonb) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN error IS NOT NULL THEN jsonb_build_object(
        'type', error -> 'type', 'kind', error -> 'kind', 'message', left(error ->> 'message', 1000),
        'attempt', error -> 'attempt') END
$$;

-- A task without its payload, and with its result where that is small. What the move was is said by its event: told
-- late, the task may be another already.

CREATE FUNCTION told_of_task(id uuid, its_life int, its_seq int, its_status text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'task_id', t.task_id, 'actor', t.actor, 'task_type', t.task_type, 'provider', t.provider,
        'status', its_status, 'attempt', e.attempt, 'life', its_life, 'seq', its_seq, 'retry_count', t.retry_count,
        'max_retries', t.max_retries, 'priority', t.priority, 'user_id', t.user_id, 'tags', t.tags,
        'project_id', t.project_id, 'workflow_id', t.workflow_id, 'workflow_run_id', t.workflow_run_id,
        'interaction_id', t.interaction_id, 'workflow_key', t.workflow_key, 'parent_task_id', t.parent_task_id,
        'dedupe_key', t.dedupe_key, 'created_at', utc(t.created_at), 'started_at', utc(t.started_at),
        'completed_at', CASE WHEN its_status IN ('completed', 'dead', 'cancelled') THEN utc(e.at) END,
        'error', told_error(e.data -> 'error'), 'usage', t.usage)
        || CASE WHEN its_status <> 'completed' THEN '{}'::jsonb
                WHEN octet_length(t.result::text) <= 4096 THEN jsonb_build_object('result', t.result)
                ELSE jsonb_build_object('result_url', '/api/v1/tasks/' || t.task_id) END
    FROM tasks t LEFT JOIN task_events e ON e.task_id = t.task_id AND e.seq = its_seq WHERE t.task_id = id
$$;

-- What is signed and sent, at most 20 KB of it: what is too long goes first by its tags and its result, which can be
-- asked for, and then by all but its names.

CREATE FUNCTION body_of(type text, at timestamptz, data jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    most  int := 20000;
    whole text;
    less  jsonb;
BEGIN
    FOREACH less IN ARRAY ARRAY[
        data, data - '{result,tags}'::text[] || '{"truncated": true}',
        (SELECT jsonb_object_agg(key, value) FROM jsonb_each(data)
         WHERE key IN ('task_id', 'project_id', 'workflow_id', 'status', 'life', 'seq') AND length(value::text) < 300)
        || '{"truncated": true}']
    LOOP
        whole := jsonb_build_object('type', type, 'timestamp', utc(at), 'data', less)::text;
        EXIT WHEN octet_length(whole) <= most;
    END LOOP;
    RETURN whole;
END $$;

-- Whether a subscription takes events of a type: by its name, or as one of its kind.

CREATE FUNCTION is_subscribed(events text[], type text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT events && ARRAY[type, split_part(type, '.', 1) || '.*']
$$;

-- Whether the keys that an endpoint's owner has now let it hear of what is `told_user`'s, or, where that is null, of
-- what is no user's. Checked when a delivery is written and at each of its tries: a right ends with its key.

CREATE FUNCTION may_hear(listener text, told_user text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT 1 FROM api_keys k
        WHERE k.user_id = listener AND (k.role = 'admin' OR (k.role = 'user' AND told_user = listener))
          AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp()))
$$;

-- One event: the endpoints that hear of it, one body for all of them, and for each a delivery with its task. Whose task
-- `is_silent` is heard of by the endpoint alone that it names.

CREATE FUNCTION deliver_event(
    type text, subject text, life int, seq bigint, at timestamptz, owner text, about jsonb, data jsonb, named uuid,
    is_silent boolean
) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
    hearing uuid[];
    kept    bigint;
BEGIN
    hearing := ARRAY(
        SELECT w.webhook_id FROM webhooks w
        WHERE w.listens AND NOT is_silent AND w.created_at <= at AND is_subscribed(w.events, type)
          AND (w.scope = 'all' OR w.user_id = owner) AND may_hear(w.user_id, owner)
          AND coalesce(w.filter ->> 'project_id' = about ->> 'project_id', NOT w.filter ? 'project_id')
          AND coalesce(w.filter ->> 'workflow_id' = about ->> 'workflow_id', NOT w.filter ? 'workflow_id')
          AND coalesce(w.filter ->> 'actor' = about ->> 'actor', NOT w.filter ? 'actor')
          AND coalesce(about -> 'tags' ? (w.filter ->> 'tag'), NOT w.filter ? 'tag')
          AND NOT (type = 'webhook.disabled' AND w.webhook_id::text = subject)
        UNION
        SELECT w.webhook_id FROM webhooks w
        WHERE w.webhook_id = named AND w.deleted_at IS NULL AND may_hear(w.user_id, owner));
    hearing := ARRAY(
        SELECT heard.webhook_id FROM unnest(hearing) AS heard(webhook_id)
        WHERE NOT EXISTS (
            SELECT 1 FROM deliveries d
            WHERE d.webhook_id = heard.webhook_id AND d.subject = subject AND d.life = life AND d.seq = seq));
    IF cardinality(hearing) = 0 THEN RETURN; END IF;
    INSERT INTO webhook_bodies (body) VALUES (body_of(type, at, data)) RETURNING body_id INTO kept;
    PERFORM make_deliveries(hearing, kept, type, subject, life, seq, named);
END $$;

-- Each with its task. What an endpoint cannot take now is born held: at a failing one, as long as an older one tries.

CREATE FUNCTION make_deliveries(
    hearing uuid[], kept bigint, of_type text, of_subject text, of_life int, of_seq bigint, by_name uuid
) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    made    jsonb;
    waiting uuid[];
BEGIN
    WITH fresh AS (
        INSERT INTO deliveries (delivery_id, webhook_id, body_id, type, subject, life, seq, named, task_id)
        SELECT new_id(), heard.webhook_id, kept, of_type, of_subject, of_life, of_seq,
               heard.webhook_id IS NOT DISTINCT FROM by_name, new_id()
        FROM unnest(hearing) AS heard(webhook_id)
        ON CONFLICT (webhook_id, subject, life, seq) DO NOTHING
        RETURNING delivery_id, webhook_id, task_id
    )
    SELECT jsonb_agg(carrier(f.task_id, f.delivery_id, w.webhook_id, w.user_id, of_type) ORDER BY w.webhook_id),
           array_agg(f.task_id) FILTER (
               WHERE of_type <> 'webhook.test' AND NOT (w.state = 'enabled' OR (w.state = 'failing' AND NOT EXISTS (
                   SELECT 1 FROM deliveries d WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting'))))
    INTO made, waiting FROM fresh f JOIN webhooks w USING (webhook_id);
    IF made IS NULL THEN RETURN '{}'; END IF;
    PERFORM store_tasks(made);
    IF waiting IS NOT NULL THEN
        PERFORM hold_tasks(waiting, 'endpoint');
    END IF;
    RETURN ARRAY(SELECT (m.it #>> '{payload,delivery_id}')::uuid FROM jsonb_array_elements(made) AS m(it));
END $$;

-- The task that carries a delivery: its endpoint is its key, so that no endpoint takes more than its places. A test is
-- tried once.

CREATE FUNCTION carrier(task_id uuid, delivery_id uuid, webhook_id uuid, user_id text, type text) RETURNS jsonb
LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'task_id', task_id, 'actor', 'webhook', 'provider', 'http', 'user_id', user_id, 'timeout_seconds', 30,
        'max_retries', CASE type WHEN 'webhook.test' THEN 0 ELSE 9 END,
        'payload', jsonb_build_object('delivery_id', delivery_id), 'concurrency_key', webhook_id,
        'concerns', :concern_of_key | :concern_of_delivery, 'level', :level_of_a_webhook)
$$;

-- Gives tasks that name a url the endpoint that their submitter has for it, and makes one where there is none: with the
-- secret that came along, which nobody else has seen.

CREATE FUNCTION with_endpoints(submissions jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhooks (webhook_id, user_id, url, secret)
    SELECT DISTINCT ON (s.webhook_owner, s.webhook_url) s.new_webhook_id, s.webhook_owner, s.webhook_url,
           decode(s.new_webhook_secret, 'hex')
    FROM jsonb_to_recordset(submissions)
        AS s(webhook_owner text, webhook_url text, new_webhook_id uuid, new_webhook_secret text)
    WHERE s.webhook_url IS NOT NULL ORDER BY s.webhook_owner, s.webhook_url
    ON CONFLICT (user_id, url) WHERE deleted_at IS NULL DO NOTHING;
    RETURN (
        SELECT jsonb_agg(CASE WHEN w.webhook_id IS NULL THEN s.it
                              ELSE s.it || jsonb_build_object('webhook_id', w.webhook_id) END ORDER BY s.place)
        FROM jsonb_array_elements(submissions) WITH ORDINALITY AS s(it, place)
        LEFT JOIN webhooks w ON w.user_id = s.it ->> 'webhook_owner' AND w.url = s.it ->> 'webhook_url'
                                AND w.deleted_at IS NULL);
END $$;
