-- One heartbeat of a worker: it is alive, and so are these attempts. A lease is renewed only while it is unexpired, so
-- that a worker that was away too long learns that it has lost the task. Brings back which ones are to be cancelled.

CREATE FUNCTION renew_leases(reporter text, held uuid[], tokens uuid[], lease_seconds float)
RETURNS TABLE (claim_token uuid, owned boolean, cancel_requested boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz;
BEGIN
    UPDATE workers w SET heartbeat_at = clock_timestamp(), state = CASE w.state WHEN 'lost' THEN 'active' ELSE w.state END
    WHERE w.worker_id = reporter;
    IF cardinality(held) = 0 THEN RETURN; END IF;

    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (held) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();
    RETURN QUERY
    WITH renewed AS (
        UPDATE tasks t SET heartbeat_at = moment, lease_expires_at = moment + make_interval(secs => lease_seconds)
        FROM unnest(held, tokens) AS lease(task_id, token)
        WHERE t.task_id = lease.task_id AND t.claim_token = lease.token AND t.status = 'running'
          AND t.lease_expires_at > moment
        RETURNING t.claim_token, t.cancel_requested
    )
    SELECT lease.token, r.claim_token IS NOT NULL, coalesce(r.cancel_requested, false)
    FROM unnest(tokens) AS lease(token) LEFT JOIN renewed r ON r.claim_token = lease.token;
END $$;
