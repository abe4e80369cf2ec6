-- Takes running tasks away from workers that stopped renewing their leases, or that are proven dead. It costs a retry,
-- and the claim token goes, so that whatever the old worker still has to say is refused. Rows that somebody is just
-- moving are left to them. Nothing is judged when the caller's last word from Postgres (`heard_at`) is older than its
-- patience: this call was held up on the way, and so were the renewals of the living. `proofs` has, by worker, how its
-- guardian ended it and everything below. The dependents that it buried come last, without a worker. A task that was
-- among few when its worker was lost may have been the cause, and is the more suspected for it. What an earlier loss
-- had made it suspected of is forgotten if it ran well this time. How many a worker had is kept with it, as they may be
-- taken back in several calls. The one that a worker had to go for, because it did not listen when its time was up
-- (`hung_reason` in `shared/store/operating/workers.py`), has timed out; and the one that did not give the loop back on
-- which others ran (`stuck_reason`) is told so.

CREATE FUNCTION stall_tasks(
    expired_for_seconds float, dead_workers text[], proofs jsonb, delays float[], at_most int,
    heard_at timestamptz, patience_seconds float, timeout_factor float
)
RETURNS TABLE (task_id uuid, status text, worker_id text, actor text, provider text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    stale   uuid[];
    moment  timestamptz := clock_timestamp();
    final   uuid[];
    holders text[];
    losses  bigint[];
    moves   jsonb;
BEGIN
    IF moment > heard_at + make_interval(secs => patience_seconds) THEN RETURN; END IF;
    SELECT array_agg(losing.worker_id), array_agg(losing.tasks) INTO holders, losses FROM (
        SELECT t.worker_id, count(*) AS tasks FROM tasks t WHERE t.status IN :sources_of_stall GROUP BY t.worker_id
        HAVING bool_or(t.lease_expires_at <= moment - make_interval(secs => expired_for_seconds))
               OR t.worker_id = ANY (dead_workers)
    ) AS losing;
    IF holders IS NULL THEN RETURN; END IF;
    -- Before the tasks, as a renewal does it; one that is just under way is not waited for.
    WITH losing AS (SELECT * FROM unnest(holders, losses) AS l(worker_id, tasks)), free AS (
        SELECT w.worker_id FROM workers w WHERE w.worker_id = ANY (holders) FOR NO KEY UPDATE SKIP LOCKED
    )
    UPDATE workers w SET lost_tasks = losing.tasks FROM losing JOIN free USING (worker_id)
    WHERE w.worker_id = losing.worker_id AND w.lost_tasks < losing.tasks;

    stale := ARRAY(
        SELECT t.task_id FROM tasks t
        WHERE t.status IN :sources_of_stall
          AND (t.lease_expires_at <= moment - make_interval(secs => expired_for_seconds)
               OR t.worker_id = ANY (dead_workers))
        ORDER BY t.task_id LIMIT at_most);
    -- Chosen unlocked, then locked and looked at again.
    SELECT array_agg(t.task_id) INTO stale FROM unnest(stale) AS one(task_id)
    CROSS JOIN LATERAL (
        SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0 FOR NO KEY UPDATE SKIP LOCKED
    ) AS t
    WHERE t.status IN :sources_of_stall
      AND (t.lease_expires_at <= moment - make_interval(secs => expired_for_seconds)
           OR t.worker_id = ANY (dead_workers));
    IF stale IS NULL THEN RETURN; END IF;
    moment := clock_timestamp();

    RETURN QUERY
    WITH judged AS (
        SELECT t.task_id, t.worker_id AS holder, t.retry_count >= t.max_retries AS exhausted,
               CASE WHEN t.cancel_requested THEN 'cancel' ELSE 'stall' END AS via,
               ran_well(t.report_count, t.started_at, t.heartbeat_at) AS ran_well,
               were_few(greatest(l.tasks, w.lost_tasks)) AS among_few,
               coalesce(w.stop_reason = 'condemned: task ' || t.task_id || ' ignores its deadline', false) AS hung,
               coalesce(w.stop_reason = 'condemned: task ' || t.task_id || ' holds up its event loop', false) AS stuck
        FROM tasks t LEFT JOIN unnest(holders, losses) AS l(worker_id, tasks) ON l.worker_id = t.worker_id
        LEFT JOIN workers w ON w.worker_id = t.worker_id
        WHERE t.task_id = ANY (stale)
    ), moved AS (
        UPDATE tasks t SET
            status = CASE WHEN j.via = 'cancel' THEN :target_of_cancel
                          WHEN j.exhausted THEN 'dead' ELSE 'retrying' END,
            claim_token = NULL, lease_expires_at = NULL, lane = 'retry',
            retry_count = t.retry_count + (j.via = 'stall' AND NOT j.exhausted)::int, stall_count = t.stall_count + 1,
            suspicion = CASE WHEN j.ran_well THEN 0 ELSE t.suspicion END + coalesce(j.among_few, false)::int,
            available_at = CASE WHEN j.via = 'cancel' OR j.exhausted THEN t.available_at ELSE moment + make_interval(
                secs => delays[least(t.stall_count + 1, cardinality(delays))] * (1 + random() * 0.1)) END,
            timeout_seconds = CASE WHEN j.hung AND NOT j.exhausted THEN t.timeout_seconds * timeout_factor
                                   ELSE t.timeout_seconds END,
            error = CASE WHEN j.via = 'cancel' THEN t.error ELSE jsonb_build_object(
                'type', CASE WHEN j.hung THEN 'TimedOut' ELSE 'WorkerLost' END, 'kind', 'transient',
                'message', CASE WHEN j.hung THEN 'the attempt did not stop when its ' || t.timeout_seconds
                                                 || ' s were over; worker ' || j.holder || ' had to go for it'
                                WHEN j.stuck THEN 'the attempt held up the event loop on which others ran, too; worker '
                                                  || j.holder || ' had to go for it'
                                ELSE 'worker ' || j.holder || ' died or stopped renewing its lease' END,
                'stack_trace', NULL,
                'details', jsonb_build_object('worker_id', j.holder)
                           || CASE WHEN j.exhausted THEN '{"retries_exhausted": true}'::jsonb ELSE '{}' END,
                'attempt', t.attempt) END,
            completed_at = CASE WHEN j.via = 'cancel' OR j.exhausted THEN moment END,
            updated_at = moment, last_seq = t.last_seq + 1
        FROM judged j WHERE t.task_id = j.task_id
        RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.error, t.actor, t.provider, t.usage, j.via, j.holder
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, m.via, moment, m.attempt,
               jsonb_strip_nulls(jsonb_build_object(
                   'status', m.status, 'proof', proofs -> m.holder, 'usage_so_far', m.usage))
               || CASE m.via WHEN 'stall' THEN jsonb_build_object('error', m.error) ELSE '{}' END
        FROM moved m
    )
    SELECT m.task_id, m.status::text, m.holder::text, m.actor::text, m.provider::text FROM moved m;

    SELECT array_agg(t.task_id) FILTER (WHERE t.completed_at IS NOT NULL),
           jsonb_agg(move_of(t.task_id, t.last_seq, t.life, t.told,
                             CASE t.status WHEN 'cancelled' THEN 'cancel' ELSE 'stall' END, t.status, moment))
           FILTER (WHERE t.told <> 0)
    INTO final, moves
    FROM (SELECT tasks.*, :all_concerns_of(tasks) AS told FROM tasks WHERE task_id = ANY (stale)) AS t;
    IF final IS NOT NULL THEN
        PERFORM tally_tasks(final);
        final := settle_dependents(final, stale);
        RETURN QUERY SELECT t.task_id, t.status::text, NULL, t.actor::text, t.provider::text
        FROM tasks t WHERE t.task_id = ANY (final);
    END IF;
    IF moves IS NOT NULL THEN
        PERFORM write_moves(moves);
    END IF;
    PERFORM wake_streams(stale), wake_dispatcher(providers_of(stale));
END $$;
