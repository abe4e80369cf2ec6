-- One heartbeat of a worker: it is alive, and so are these attempts. A lease is renewed only while it is unexpired, so
-- that a worker that was away too long learns that it has lost the task. It waits for nobody: a row that somebody else
-- has locked is `skipped`, neither renewed nor lost, and whoever holds one row cannot keep the others from being
-- renewed. To a worker that knows nothing of skipping, such an attempt is not `owned`: it stops that one, and in time.
-- Brings back which ones are to be cancelled.

CREATE FUNCTION renew_leases(reporter text, held uuid[], tokens uuid[], lease_seconds float)
RETURNS TABLE (claim_token uuid, owned boolean, skipped boolean, cancel_requested boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment  timestamptz;
    free    uuid[];
    renewed int;
BEGIN
    UPDATE workers w SET
        heartbeat_at = clock_timestamp(), state = CASE w.state WHEN 'lost' THEN 'active' ELSE w.state END
    WHERE w.worker_id = (SELECT worker_id FROM workers WHERE worker_id = reporter FOR NO KEY UPDATE SKIP LOCKED);
    IF cardinality(held) = 0 THEN RETURN; END IF;

    SELECT array_agg(lease.task_id) INTO free
    FROM unnest(held, tokens) AS lease(task_id, token)
    -- One by one (OFFSET 0 keeps the conditions out): a plan made while few tasks ran would read all that run.
    CROSS JOIN LATERAL (
        SELECT * FROM tasks WHERE tasks.task_id = lease.task_id OFFSET 0 FOR NO KEY UPDATE SKIP LOCKED
    ) AS t
    WHERE t.claim_token = lease.token AND t.status = 'running';
    moment := clock_timestamp();

    RETURN QUERY
    UPDATE tasks t SET heartbeat_at = moment, lease_expires_at = moment + make_interval(secs => lease_seconds)
    WHERE t.task_id = ANY (free) AND t.lease_expires_at > moment
    RETURNING t.claim_token, true, false, t.cancel_requested;
    GET DIAGNOSTICS renewed = ROW_COUNT;

    IF renewed < cardinality(held) THEN
        -- What is ours and lasts, and was not renewed just now, is locked. The rest is lost, whoever has locked it.
        RETURN QUERY
        SELECT lease.token, false, coalesce(t.is_ours, false), coalesce(t.is_ours AND t.cancel_requested, false)
        FROM unnest(held, tokens) AS lease(task_id, token)
        LEFT JOIN LATERAL (
            SELECT tasks.heartbeat_at, tasks.cancel_requested, tasks.claim_token = lease.token
                   AND tasks.status = 'running' AND tasks.lease_expires_at > moment AS is_ours
            FROM tasks WHERE tasks.task_id = lease.task_id OFFSET 0
        ) AS t ON true
        WHERE (t.is_ours AND t.heartbeat_at = moment) IS NOT TRUE;
    END IF;
END $$;
