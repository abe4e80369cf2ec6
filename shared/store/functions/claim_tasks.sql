-- Gives tasks to a worker. The provider is locked first and the slots are counted by a later statement: in one
-- statement the snapshot would be older than the lock, and a claim that had waited for it would overshoot the limit.
-- A provider without a limit has no slots to count and is not locked; one that is given a limit just then grants nothing
-- to claims that have not locked it. Repeating a claim with its token answers as the
-- first time did. A refused claim takes the doorbell's mark back, so that the dispatcher may ring again in time.

CREATE FUNCTION claim_tasks(wanted uuid[], tokens uuid[], claimant text, lease_seconds float)
RETURNS TABLE (
    task_id uuid, refusal text, actor text, provider text, payload jsonb, checkpoint jsonb, attempt int,
    retry_count int, max_retries int, interrupt_count int, stall_count int, rate_limited_count int,
    timeout_seconds float
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment  timestamptz;
    locked  text[];
    claimed uuid[];
    refused uuid[];
BEGIN
    SELECT coalesce(array_agg(limited.name), '{}') INTO locked FROM (
        SELECT p.name FROM providers p
        WHERE p.name IN (SELECT t.provider FROM tasks t WHERE t.task_id = ANY (wanted))
          AND coalesce(p.limit_override, p.configured_limit) IS NOT NULL
        ORDER BY p.name FOR NO KEY UPDATE
    ) AS limited;
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();

    WITH free AS (
        SELECT p.name, coalesce(p.limit_override, p.configured_limit)
                       - (SELECT count(*) FROM tasks t WHERE t.provider = p.name AND t.status = 'running') AS slots
        FROM providers p
        WHERE p.name IN (SELECT t.provider FROM tasks t WHERE t.task_id = ANY (wanted))
          AND coalesce(p.limit_override, p.configured_limit) IS NOT NULL
    ), ready AS (
        SELECT t.task_id, claim.token, t.provider,
               row_number() OVER (PARTITION BY t.provider ORDER BY t.priority, t.task_id) AS place
        FROM unnest(wanted, tokens) AS claim(task_id, token) JOIN tasks t ON t.task_id = claim.task_id
        WHERE t.status IN :sources_of_claim AND t.available_at <= moment
          AND (t.expires_at IS NULL OR t.expires_at > moment)
    ), moved AS (
        UPDATE tasks t SET
            status = :target_of_claim, attempt = t.attempt + 1, claim_token = r.token, worker_id = claimant,
            started_at = moment, heartbeat_at = moment, lease_expires_at = moment + make_interval(secs => lease_seconds),
            progress = NULL, report_count = 0, doorbell_token = NULL, doorbell_at = NULL, doorbell_count = 0,
            updated_at = moment, last_seq = t.last_seq + 1
        FROM ready r LEFT JOIN free ON free.name = r.provider
        WHERE t.task_id = r.task_id AND (free.slots IS NULL OR (r.provider = ANY (locked) AND r.place <= free.slots))
        RETURNING t.task_id, t.last_seq, t.attempt, t.status
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, 'claim', moment, m.attempt,
               jsonb_build_object('status', m.status, 'worker_id', claimant, 'elapsed_ms', 0)
        FROM moved m
    )
    SELECT array_agg(m.task_id) INTO claimed FROM moved m;

    WITH unmarked AS (
        UPDATE tasks t SET doorbell_token = NULL, doorbell_at = NULL, doorbell_count = 0
        WHERE t.task_id = ANY (wanted) AND t.status IN :sources_of_claim AND t.doorbell_token IS NOT NULL
        RETURNING t.task_id
    )
    SELECT array_agg(u.task_id) INTO refused FROM unmarked u;
    PERFORM wake_streams(claimed) WHERE claimed IS NOT NULL;
    PERFORM wake_dispatcher() WHERE refused IS NOT NULL;

    RETURN QUERY
    SELECT claim.task_id,
           CASE WHEN t.status = 'running' AND t.claim_token = claim.token THEN NULL
                WHEN t.task_id IS NULL THEN 'unknown'
                WHEN t.status NOT IN :sources_of_claim THEN 'not-waiting'
                WHEN t.available_at > moment THEN 'not-due'
                WHEN t.expires_at <= moment THEN 'expired'
                ELSE 'no-slot' END,
           t.actor::text, t.provider::text, t.payload, t.checkpoint, t.attempt, t.retry_count, t.max_retries,
           t.interrupt_count, t.stall_count, t.rate_limited_count, t.timeout_seconds
    FROM unnest(wanted, tokens) AS claim(task_id, token) LEFT JOIN tasks t ON t.task_id = claim.task_id;
END $$;
