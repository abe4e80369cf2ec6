-- What becomes of the tasks that carry deliveries, as deliveries and endpoints hear it. An endpoint's row is read, and
-- locked only where its state is to change: after the tasks, and whoever has locked one waits for no task
-- (docs/lock_order.md).

-- The teller of the concern `delivery`. What was superseded by another task says nothing any more.

CREATE FUNCTION tell_delivery(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moved record;
BEGIN
    FOR moved IN
        SELECT m.move, m.status, m.at, t.task_id, t.error, d.delivery_id, d.webhook_id,
               -- What its last attempt has left, and no earlier one.
               CASE WHEN (t.checkpoint #>> '{try,attempt}')::int = e.attempt THEN t.checkpoint -> 'try' END AS said
        FROM jsonb_to_recordset(moves) AS m(task_id uuid, seq int, move text, status text, at timestamptz)
        JOIN deliveries d ON d.task_id = m.task_id
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
        LEFT JOIN task_events e ON e.task_id = m.task_id AND e.seq = m.seq
        WHERE m.move <> 'submit'
        ORDER BY d.webhook_id, m.at
    LOOP
        PERFORM note_try(moved.delivery_id, moved.webhook_id, moved.task_id, moved.at, moved.said)
        WHERE moved.said IS NOT NULL;
        UPDATE deliveries d SET
            state = CASE moved.status WHEN 'completed' THEN 'delivered' WHEN 'dead' THEN 'failed'
                                      WHEN 'cancelled' THEN 'failed' ELSE 'waiting' END,
            delivered_at = CASE moved.status WHEN 'completed' THEN moved.at END,
            reason = CASE moved.status WHEN 'dead' THEN left(moved.error ->> 'message', 300)
                                       WHEN 'cancelled' THEN coalesce(d.reason, 'cancelled') END
        WHERE d.delivery_id = moved.delivery_id
          AND (moved.status IN ('completed', 'dead', 'cancelled') OR d.state <> 'waiting');
        PERFORM judge_endpoint(moved.webhook_id, moved.move, moved.said);
    END LOOP;
END $$;

-- Written once for each attempt, by whichever of its moves is told first.

CREATE FUNCTION note_try(of_delivery uuid, of_webhook uuid, of_task uuid, moment timestamptz, said jsonb)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO delivery_tries (
        delivery_id, webhook_id, task_id, attempt, at, delivered, status_code, elapsed_ms, error, excerpt)
    VALUES (of_delivery, of_webhook, of_task, (said ->> 'attempt')::int, moment, (said ->> 'delivered')::boolean,
            (said ->> 'status_code')::int, (said ->> 'elapsed_ms')::int, said ->> 'error', said ->> 'excerpt')
    ON CONFLICT (task_id, attempt) DO NOTHING;
    IF FOUND THEN
        UPDATE deliveries d SET attempts = d.attempts + 1, last_status = (said ->> 'status_code')::int
        WHERE d.delivery_id = of_delivery;
    END IF;
END $$;

-- What one try says about its endpoint. Five failures in a row make it failing, five days of it disable it, a 410 makes
-- it gone, and a 2xx mends what a person has not broken.

CREATE FUNCTION judge_endpoint(id uuid, move text, said jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    w       webhooks;
    was_try boolean := said IS NOT NULL AND move IN ('complete', 'retry', 'bury');
    changed text;
BEGIN
    SELECT * INTO w FROM webhooks WHERE webhook_id = id;
    IF was_try THEN
        changed := next_state(w, said);
    END IF;
    IF changed IS NULL AND (w.state = 'enabled' OR w.deleted_at IS NOT NULL) THEN RETURN; END IF;
    SELECT * INTO w FROM webhooks WHERE webhook_id = id FOR NO KEY UPDATE;
    IF was_try THEN
        changed := next_state(w, said); -- once more: somebody may have been quicker
    END IF;
    IF changed IS NOT NULL THEN
        PERFORM move_endpoint(w, changed, CASE changed
            WHEN 'failing' THEN 'it failed five times in a row' WHEN 'gone' THEN 'it said 410: gone'
            WHEN 'disabled' THEN 'it failed for five days' END);
    ELSIF w.probing THEN
        UPDATE webhooks SET probing = false WHERE webhook_id = id;
    END IF;
    PERFORM settle_endpoint(id);
END $$;

-- Null where it stays as it is.

CREATE FUNCTION next_state(w webhooks, said jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF w.deleted_at IS NOT NULL OR w.state = 'gone' THEN RETURN NULL; END IF;
    IF (said ->> 'delivered')::boolean THEN
        RETURN CASE WHEN w.state = 'failing' OR (w.state = 'disabled' AND w.failing_since IS NOT NULL)
                    THEN 'enabled' END;
    ELSIF (said ->> 'gone')::boolean THEN
        RETURN 'gone';
    ELSIF w.state = 'failing' THEN
        RETURN CASE WHEN w.failing_since <= clock_timestamp() - interval '5 days' THEN 'disabled' END;
    ELSIF w.state = 'enabled' THEN
        RETURN (
            SELECT CASE WHEN count(*) = 5 AND NOT bool_or(latest.delivered) THEN 'failing' END FROM (
                SELECT y.delivered FROM delivery_tries y WHERE y.webhook_id = w.webhook_id AND y.at > w.changed_at
                ORDER BY y.try_id DESC LIMIT 5
            ) AS latest);
    END IF;
    RETURN NULL;
END $$;

-- One writer of an endpoint's state. The caller has locked it, and settles its deliveries after. One that was disabled
-- because it failed is tried once a day, for thirty days.

CREATE FUNCTION move_endpoint(w webhooks, target text, why text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment   timestamptz := clock_timestamp();
    given_up boolean := target = 'disabled' AND why = 'it failed for five days'; -- and no person's doing
BEGIN
    UPDATE webhooks SET
        state = target, reason = why, changed_at = moment, updated_at = moment, probing = false,
        failing_since = CASE WHEN target = 'failing' THEN coalesce((
                SELECT min(latest.at) FROM (
                    SELECT y.at FROM delivery_tries y WHERE y.webhook_id = w.webhook_id AND y.at > w.changed_at
                    ORDER BY y.try_id DESC LIMIT 5
                ) AS latest), moment)
            WHEN given_up THEN w.failing_since END,
        probe_at = CASE WHEN given_up THEN moment + interval '1 day' END
    WHERE webhook_id = w.webhook_id;
    IF given_up THEN
        PERFORM tell_event(
            'webhook.disabled', w.webhook_id::text, (extract(epoch FROM moment) * 1000000)::bigint, moment, w.user_id,
            '{}', jsonb_build_object(
                'webhook_id', w.webhook_id, 'url', w.url, 'user_id', w.user_id, 'reason', why,
                'failing_since', utc(w.failing_since)));
    END IF;
END $$;
