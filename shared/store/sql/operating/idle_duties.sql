-- Which of the janitor's duties would find nothing, asked for all at once: each is a probe of an index that has only
-- what such a duty looks for, so that a calm janitor asks this and nothing else. What a duty looks for is written there
-- and here; a test holds the one to the other. A duty that is not named here is done whenever its time comes. Without
-- sequential scans, for a planner that believes in many of a kind would read all of history for one of them.

CREATE FUNCTION idle_duties() RETURNS text[] LANGUAGE plpgsql SET enable_seqscan = off AS $$
DECLARE
    moment timestamptz := clock_timestamp();
BEGIN
    RETURN ARRAY(
        SELECT probed.duty FROM (
            VALUES
            ('stale', NOT EXISTS (
                SELECT 1 FROM tasks t
                WHERE t.status = 'running' AND t.lease_expires_at <= moment)),
            ('expired', first_expired(1) IS NULL),
            ('approvals', NOT EXISTS (
                SELECT 1 FROM tasks t
                WHERE t.status = 'blocked' AND t.asked_at IS NOT NULL AND t.ask_expires_at IS NOT NULL
                  AND t.ask_expires_at <= moment)),
            ('dependents', NOT EXISTS (SELECT 1 FROM unsettled)),
            ('keys', NOT EXISTS (
                SELECT 1 FROM tasks t WHERE t.concurrency_key IS NOT NULL AND t.held = '{key}')),
            ('projects', NOT EXISTS (
                SELECT 1 FROM projects p WHERE p.state <> 'idle' AND p.forced_at IS NOT NULL)),
            ('endpoints', NOT EXISTS (SELECT 1 FROM webhooks w WHERE w.probe_at <= moment)),
            ('bulk', NOT EXISTS (SELECT 1 FROM bulk_jobs b WHERE b.state IN ('running', 'waiting-for-canary'))),
            ('memory', NOT is_memory_waiting()),
            ('blocked', NOT EXISTS (SELECT 1 FROM tasks t WHERE t.status = 'blocked')),
            ('breakers', NOT EXISTS (SELECT 1 FROM provider_results)),
            ('questions', NOT EXISTS (
                SELECT 1 FROM question_vectors q WHERE q.created_at < moment - interval '1 hour'))
        ) AS probed(duty, is_idle)
        WHERE probed.is_idle);
END $$;
