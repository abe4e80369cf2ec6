-- Endpoints: what is done to one, and how what waits for it follows its state. Whoever has locked an endpoint waits for
-- no task: what somebody else has locked is left to the janitor (`unsettled`).

-- Does to the deliveries that wait what the endpoint's state asks for: at an enabled one they are released, in their
-- order; at a failing one the oldest tries, and all others are held; at a disabled one or one that is gone all are,
-- unless its daily probe is due; of a deleted one they are given up. A page at once, of those alone that do not stand
-- so yet: the janitor goes on with the rest. The endpoint is locked.

CREATE FUNCTION settle_endpoint(id uuid) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at_once  int := 500;
    w        webhooks;
    free     uuid[]; -- those that may go
    stopped  uuid[];
    oldest   uuid;
    wanted   int;
    is_whole boolean;
BEGIN
    SELECT * INTO w FROM webhooks WHERE webhook_id = id;
    IF w.deleted_at IS NOT NULL THEN
        RETURN give_up_deliveries(id, 'deleted');
    END IF;
    oldest := (SELECT d.delivery_id FROM deliveries d WHERE d.webhook_id = id AND d.state = 'waiting'
               ORDER BY d.delivery_id LIMIT 1);
    SELECT array_agg(d.task_id ORDER BY d.delivery_id) FILTER (WHERE d.is_held),
           array_agg(d.task_id) FILTER (WHERE NOT d.is_held), count(*) < at_once
    INTO free, stopped, is_whole FROM (
        SELECT d.task_id, d.delivery_id, 'endpoint' = ANY (t.held) AS is_held
        FROM deliveries d JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = d.task_id OFFSET 0) AS t ON true
        WHERE d.webhook_id = id AND d.state = 'waiting' AND t.status <> 'running'
          AND ('endpoint' = ANY (t.held)) = (
              w.state = 'enabled' OR d.type = 'webhook.test'
              OR ((w.state = 'failing' OR w.probing) AND d.delivery_id = oldest))
        ORDER BY d.delivery_id LIMIT at_once
    ) AS d;
    wanted := coalesce(cardinality(free), 0) + coalesce(cardinality(stopped), 0);
    free := ARRAY(SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (free) FOR NO KEY UPDATE SKIP LOCKED);
    stopped := ARRAY(SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (stopped) FOR NO KEY UPDATE SKIP LOCKED);
    IF cardinality(free) > 0 THEN
        -- Those that were parked for the key as well, or younger ones, held from birth, would overtake them: whoever
        -- claims parks anew.
        PERFORM release_tasks(free, 'key');
        PERFORM release_tasks(free, 'endpoint');
    END IF;
    IF cardinality(stopped) > 0 THEN
        PERFORM hold_tasks(stopped, 'endpoint');
    END IF;
    is_whole := cardinality(free) + cardinality(stopped) = wanted AND is_whole;
    RETURN note_settled(id, is_whole);
END $$;

-- Keeps whether the janitor has to go on, and calls it if so.

CREATE FUNCTION note_settled(id uuid, is_whole boolean) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE webhooks w SET unsettled = NOT is_whole WHERE w.webhook_id = id AND w.unsettled = is_whole;
    PERFORM pg_notify('windlass_endpoints', '') WHERE NOT is_whole;
    RETURN is_whole;
END $$;

-- Gives up what waits for an endpoint, for a reason: nothing is lost, each can be sent again.

CREATE FUNCTION give_up_deliveries(id uuid, why text) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    at_once int := 500;
    waiting uuid[];
    free    uuid[];
BEGIN
    waiting := ARRAY(
        SELECT d.task_id FROM deliveries d WHERE d.webhook_id = id AND d.state = 'waiting'
        ORDER BY d.delivery_id LIMIT at_once);
    -- One that is under way comes to its own end.
    free := ARRAY(
        SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (waiting) AND t.status <> 'running'
        FOR NO KEY UPDATE SKIP LOCKED);
    UPDATE deliveries d SET reason = why WHERE d.task_id = ANY (free);
    PERFORM cancel_tasks(free, why) WHERE cardinality(free) > 0;
    RETURN note_settled(id, cardinality(waiting) < at_once AND NOT EXISTS (
        SELECT 1 FROM deliveries d JOIN tasks t ON t.task_id = d.task_id
        WHERE d.webhook_id = id AND d.state = 'waiting' AND t.status <> 'running'));
END $$;

-- What an attempt needs to deliver, and whether it is its turn: `word` is `send`, or why not. The endpoint's state, url
-- and secrets are read at every try.

CREATE FUNCTION begin_delivery(carried_by uuid, named_delivery uuid)
RETURNS TABLE (
    word text, delivery_id uuid, webhook_id uuid, url text, body text, secret bytea, previous_secret bytea
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT CASE
               WHEN w.deleted_at IS NOT NULL THEN 'deleted'
               WHEN NOT may_hear(w.user_id, CASE d.type WHEN 'webhook.test' THEN w.user_id
                                                        ELSE b.body::jsonb #>> '{data,user_id}' END)
               THEN 'forbidden'
               WHEN d.type = 'webhook.test' THEN 'send'
               WHEN NOT d.named AND NOT is_subscribed(w.events, d.type) THEN 'unsubscribed'
               WHEN w.state = 'enabled' THEN 'send'
               WHEN (w.state = 'failing' OR w.probing) AND NOT EXISTS (
                   SELECT 1 FROM deliveries o
                   WHERE o.webhook_id = w.webhook_id AND o.state = 'waiting' AND o.delivery_id < d.delivery_id)
               THEN 'send' ELSE 'held' END,
           d.delivery_id, w.webhook_id, w.url::text, b.body, w.secret,
           CASE WHEN w.previous_until > clock_timestamp() THEN w.previous_secret END
    FROM deliveries d JOIN webhooks w USING (webhook_id) JOIN webhook_bodies b USING (body_id)
    WHERE d.task_id = carried_by AND d.delivery_id = named_delivery;
END $$;

-- Enables an endpoint, disables it or deletes it, by hand. What is held goes on, or, with `replay` none, is given up.

CREATE FUNCTION enable_endpoint(id uuid, replay boolean) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    w webhooks;
BEGIN
    SELECT * INTO w FROM webhooks WHERE webhook_id = id FOR NO KEY UPDATE;
    PERFORM move_endpoint(w, 'enabled', NULL) WHERE w.state <> 'enabled';
    PERFORM give_up_deliveries(id, 'not replayed') WHERE NOT replay AND w.state <> 'enabled';
    PERFORM settle_endpoint(id);
END $$;

CREATE FUNCTION disable_endpoint(id uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    w webhooks;
BEGIN
    SELECT * INTO w FROM webhooks WHERE webhook_id = id FOR NO KEY UPDATE;
    PERFORM move_endpoint(w, 'disabled', 'by hand') WHERE w.state <> 'disabled' OR w.probe_at IS NOT NULL;
    PERFORM settle_endpoint(id);
END $$;

CREATE FUNCTION delete_endpoint(id uuid) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE webhooks w SET deleted_at = clock_timestamp(), updated_at = clock_timestamp(), probe_at = NULL
    WHERE w.webhook_id = id AND w.deleted_at IS NULL;
    PERFORM settle_endpoint(id);
END $$;

-- Revokes a key, and stops what its owner has no right to any more, in one transaction. Revoking it again changes
-- nothing.

CREATE FUNCTION revoke_key(id text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    owner text;
BEGIN
    UPDATE api_keys k SET revoked_at = coalesce(k.revoked_at, clock_timestamp()) WHERE k.key_id = id
    RETURNING k.user_id INTO owner;
    IF NOT FOUND THEN RETURN; END IF;
    PERFORM disable_keyless(owner), pg_notify('windlass_keys', id);
    PERFORM write_event('schedule', s.schedule_id, 'revoke') FROM schedules s
    WHERE s.user_id = owner AND s.state = 'active' AND s.deleted_at IS NULL AND NOT has_a_key(owner);
END $$;

-- After a key of this owner was revoked or has expired: without another key its endpoints are disabled, and without an
-- admin's key those that hear of everything. Deliveries that wait are given up. With a key again, the owner can enable
-- them.

CREATE FUNCTION disable_keyless(owner text) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    w        webhooks;
    why      text := CASE WHEN has_a_key(owner) THEN 'its owner is no admin any more'
                          ELSE 'its owner has no key any more' END;
    disabled int := 0;
BEGIN
    FOR w IN
        SELECT * FROM webhooks
        WHERE user_id = owner AND deleted_at IS NULL AND NOT may_hear(owner, CASE scope WHEN 'own' THEN owner END)
        ORDER BY webhook_id FOR NO KEY UPDATE
    LOOP
        PERFORM move_endpoint(w, 'disabled', why);
        PERFORM give_up_deliveries(w.webhook_id, why);
        PERFORM settle_endpoint(w.webhook_id);
        disabled := disabled + 1;
    END LOOP;
    RETURN disabled;
END $$;

-- A delivery that says nothing but that it came; it goes whatever the endpoint's state is.

CREATE FUNCTION test_endpoint(id uuid) RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz := clock_timestamp();
    kept   bigint;
    made   uuid[];
BEGIN
    INSERT INTO webhook_bodies (body)
    VALUES (body_of('webhook.test', moment, jsonb_build_object('webhook_id', id))) RETURNING body_id INTO kept;
    made := make_deliveries(
        ARRAY[id], kept, 'webhook.test', id::text, 1, (extract(epoch FROM moment) * 1000000)::bigint, NULL);
    RETURN made[1];
END $$;

-- Sends a delivery once more, under its id: a new task carries it, and one that still waits is superseded. At a failing
-- endpoint it is held while an older one tries. Returns why not, if it does not.

CREATE FUNCTION redeliver(id uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    d     deliveries;
    w     webhooks;
    was   text;
    fresh uuid := new_id();
BEGIN
    SELECT * INTO d FROM deliveries WHERE delivery_id = id;
    -- Locked before it is looked at: nobody takes it from here on.
    SELECT t.status INTO was FROM tasks t WHERE t.task_id = d.task_id FOR NO KEY UPDATE;
    SELECT * INTO d FROM deliveries WHERE delivery_id = id FOR NO KEY UPDATE;
    SELECT * INTO w FROM webhooks WHERE webhook_id = d.webhook_id;
    IF w.deleted_at IS NOT NULL THEN RETURN 'webhook-deleted'; END IF;
    IF w.state IN ('disabled', 'gone') THEN RETURN 'webhook-disabled'; END IF;
    IF was = 'running' OR NOT EXISTS (SELECT 1 FROM tasks t WHERE t.task_id = d.task_id AND t.status = was) THEN
        RETURN 'delivery-under-way';
    END IF;
    UPDATE deliveries SET task_id = fresh, state = 'waiting', delivered_at = NULL, reason = NULL WHERE delivery_id = id;
    PERFORM cancel_tasks(ARRAY[d.task_id], 'superseded') WHERE was NOT IN ('completed', 'dead', 'cancelled');
    PERFORM store_tasks(jsonb_build_array(carrier(fresh, id, w.webhook_id, w.user_id, d.type)));
    PERFORM hold_tasks(ARRAY[fresh], 'endpoint') WHERE w.state = 'failing' AND d.type <> 'webhook.test' AND EXISTS (
        SELECT 1 FROM deliveries o
        WHERE o.webhook_id = w.webhook_id AND o.state = 'waiting' AND o.delivery_id < d.delivery_id);
    RETURN NULL;
END $$;

-- The janitor's part: one endpoint after another whose deliveries do not stand as its state asks for, or whose daily
-- probe is due, or that stands still because the one that tried it came to an end just as another was told. Returns
-- which it was, none where there is nothing to do.

CREATE FUNCTION look_after_endpoint() RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    w      webhooks;
    moment timestamptz := clock_timestamp();
BEGIN
    SELECT * INTO w FROM webhooks WHERE unsettled ORDER BY webhook_id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        SELECT * INTO w FROM webhooks WHERE probe_at <= moment ORDER BY probe_at LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED;
        IF NOT FOUND THEN RETURN NULL; END IF;
        UPDATE webhooks SET
            probing = true, probe_at = CASE WHEN moment < w.changed_at + interval '30 days'
                                            THEN moment + interval '1 day' END
        WHERE webhook_id = w.webhook_id;
    END IF;
    PERFORM settle_endpoint(w.webhook_id);
    RETURN w.webhook_id;
END $$;

-- Gives up what a disabled endpoint has held for too long, or beyond the number that is kept: the oldest first, a page
-- at once. Each can be sent again. Returns how many these were.

CREATE FUNCTION give_up_held(held_most int, held_days int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    at_once int := 100; -- cancelling a delivery's task takes about 2 ms
    found   int := 0;
    id      uuid;
    last    uuid; -- the youngest of those that are too many
    free    uuid[];
BEGIN
    FOR id IN
        SELECT w.webhook_id FROM webhooks w WHERE w.state IN ('disabled', 'gone') AND w.deleted_at IS NULL
          AND EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting')
        ORDER BY w.webhook_id FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        last := (SELECT d.delivery_id FROM deliveries d WHERE d.webhook_id = id AND d.state = 'waiting'
                 ORDER BY d.delivery_id DESC OFFSET held_most LIMIT 1);
        free := ARRAY(
            SELECT t.task_id FROM tasks t WHERE t.status <> 'running' AND t.task_id = ANY (ARRAY(
                SELECT d.task_id FROM (
                    SELECT * FROM deliveries WHERE webhook_id = id AND state = 'waiting'
                    ORDER BY delivery_id LIMIT at_once
                ) AS d
                WHERE d.delivery_id <= last OR d.created_at < clock_timestamp() - make_interval(days => held_days)))
            FOR NO KEY UPDATE SKIP LOCKED);
        UPDATE deliveries d SET reason = 'held for too long at a disabled webhook' WHERE d.task_id = ANY (free);
        PERFORM cancel_tasks(free, 'held for too long') WHERE cardinality(free) > 0;
        found := found + cardinality(free);
        EXIT WHEN found >= at_once;
    END LOOP;
    RETURN found;
END $$;

-- Disables the endpoints of owners whose last key has expired, then settles those anew whose deliveries stand still, a
-- page at once: there are few. At a failing one nobody tries; at an enabled or deleted one something is held, since it
-- was told of just as that was changed, and neither saw the other. Returns how many there were.

CREATE FUNCTION recheck_endpoints(at_most int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    id    uuid;
    found int := 0;
BEGIN
    PERFORM disable_keyless(lapsed.user_id) FROM (
        SELECT DISTINCT w.user_id FROM webhooks w
        WHERE w.deleted_at IS NULL AND (w.state <> 'disabled' OR w.probe_at IS NOT NULL)
          AND NOT may_hear(w.user_id, CASE w.scope WHEN 'own' THEN w.user_id END)
        ORDER BY w.user_id LIMIT at_most
    ) AS lapsed;
    FOR id IN
        SELECT w.webhook_id FROM webhooks w
        WHERE EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting')
          AND CASE WHEN w.state = 'enabled' OR w.deleted_at IS NOT NULL THEN EXISTS (
                       SELECT 1 FROM deliveries d JOIN tasks t ON t.task_id = d.task_id
                       WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting' AND 'endpoint' = ANY (t.held))
                   ELSE w.state = 'failing' AND NOT EXISTS (
                       SELECT 1 FROM deliveries d JOIN tasks t ON t.task_id = d.task_id
                       WHERE d.webhook_id = w.webhook_id AND d.state = 'waiting' AND 'endpoint' <> ALL (t.held))
              END
        ORDER BY w.webhook_id LIMIT at_most FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        PERFORM settle_endpoint(id);
        found := found + 1;
    END LOOP;
    RETURN found;
END $$;
