-- Gives tasks to a worker that names them: to one that runs what must run alone. The provider is locked first and the
-- slots are counted by a later statement: in one statement the snapshot would be older than the lock, and a claim that
-- had waited for it would overshoot the limit. A provider that nothing guards (no limit, no pause, breaker closed) is
-- not locked; one that comes to be guarded just then grants nothing to claims that have not locked it. After a pause
-- and while a breaker is half-open one task goes first: its claim token becomes the provider's trial token. A task
-- whose job at the provider is still open holds its slot already and needs no other. Repeating a claim with its token
-- answers as the first time did. Who is suspected of killing workers is given only to a process that has nothing else
-- to do and takes nothing else (`alone`). A rate guards as a limit does; every start takes a place in it, and going on
-- waiting for an open job takes none. Whose concurrency key is full is parked: nobody starts it before an end has made
-- room.

CREATE FUNCTION claim_tasks(
    wanted uuid[], tokens uuid[], claimant text, lease_seconds float, alone boolean DEFAULT false
)
RETURNS TABLE (
    task_id uuid, refusal text, actor text, provider text, payload jsonb, checkpoint jsonb, attempt int,
    retry_count int, max_retries int, interrupt_count int, stall_count int, rate_limited_count int,
    timeout_seconds float, waited_seconds float, retry_delays jsonb, concerns int, job_open boolean,
    user_id text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment   timestamptz;
    involved text[];
    locked   text[];
    on_trial text[];
    rated    text[];
    keyed    text[];
    claimed  uuid[];
BEGIN
    SELECT array_agg(DISTINCT t.provider),
           array_agg(DISTINCT t.provider) FILTER (WHERE t.concurrency_key IS NOT NULL AND NOT t.job_open)
    INTO involved, keyed FROM tasks t WHERE t.task_id = ANY (wanted);
    SELECT coalesce(array_agg(guarded.name), '{}'),
           coalesce(array_agg(guarded.name) FILTER (WHERE guarded.trial), '{}'),
           coalesce(array_agg(guarded.name) FILTER (WHERE guarded.has_rate), '{}')
    INTO locked, on_trial, rated FROM (
        SELECT p.name, is_on_trial(p) AS trial, rate_in_force(p) IS NOT NULL AS has_rate FROM providers p
        WHERE p.name = ANY (involved) AND (is_guarded(p) OR p.name = ANY (keyed))
        ORDER BY p.name FOR NO KEY UPDATE
    ) AS guarded;
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();
    IF keyed IS NOT NULL THEN
        PERFORM hold_tasks(crowded, 'key') FROM beyond_room(wanted, '{}', moment) AS crowded WHERE crowded IS NOT NULL;
    END IF;

    WITH gate AS (
        SELECT p.name, free_slots(p, moment) AS slots, free_resumes(p, moment) AS resumes FROM providers p
        WHERE p.name = ANY (involved) AND is_guarded(p)
    ), ready AS (
        SELECT t.task_id, claim.token, t.provider, t.job_open, row_number() OVER (
                   PARTITION BY t.provider, t.job_open AND t.provider <> ALL (on_trial)
                   ORDER BY t.job_open DESC, t.provider = ANY (on_trial) AND t.rate_limited_count > 0,
                            t.priority, t.task_id) AS place
        FROM unnest(wanted, tokens) AS claim(task_id, token)
        -- One by one (OFFSET 0 keeps the conditions out): a plan made while few tasks waited would read all that wait.
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = claim.task_id OFFSET 0) AS t
        WHERE :due_at(moment) AND (alone OR NOT runs_alone(t.suspicion))
          AND (t.group_id IS NULL OR t.job_open OR NOT :is_stopped(t))
    ), moved AS (
        UPDATE tasks t SET
            status = :target_of_claim, attempt = t.attempt + 1, claim_token = r.token, worker_id = claimant,
            claim_xid = pg_current_xact_id(), started_at = moment, heartbeat_at = moment,
            lease_expires_at = moment + make_interval(secs => lease_seconds),
            progress = NULL, report_count = 0, turn_at = NULL, updated_at = moment, last_seq = t.last_seq + 1
        FROM ready r LEFT JOIN gate ON gate.name = r.provider
        WHERE t.task_id = r.task_id AND (gate.name IS NULL OR (
            r.provider = ANY (locked) AND r.place <= CASE WHEN r.job_open THEN gate.resumes ELSE gate.slots END))
        RETURNING t.task_id, t.last_seq, t.attempt, t.status
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, 'claim', moment, m.attempt,
               jsonb_build_object('status', m.status, 'worker_id', claimant, 'elapsed_ms', 0)
        FROM moved m
    )
    SELECT array_agg(m.task_id) INTO claimed FROM moved m;

    IF cardinality(on_trial) > 0 AND claimed IS NOT NULL THEN
        PERFORM begin_trials(on_trial, claimed, moment);
    END IF;
    IF cardinality(rated) > 0 AND claimed IS NOT NULL THEN
        PERFORM take_places(rated, claimed, moment);
    END IF;
    IF claimed IS NOT NULL THEN
        PERFORM wake_streams(claimed);
    END IF;

    RETURN QUERY
    SELECT claim.task_id,
           CASE WHEN t.status = 'running' AND t.claim_token = claim.token THEN NULL
                WHEN t.task_id IS NULL THEN 'unknown'
                WHEN t.status = 'running' THEN 'running'
                WHEN t.status = 'blocked' THEN 'waiting-for-dependencies'
                WHEN t.status NOT IN :sources_of_claim OR t.expires_at <= moment THEN 'finished'
                WHEN 'key' = ANY (t.held) THEN 'key-limit'
                WHEN 'workflow' = ANY (t.held) THEN 'workflow-escalated'
                WHEN t.group_id IS NOT NULL AND NOT t.job_open AND :is_stopped(t)
                THEN CASE WHEN is_in_closed_group(t.group_id) THEN 'finished' ELSE 'workflow-escalated' END
                WHEN t.available_at > moment THEN 'waiting-for-time'
                WHEN NOT alone AND runs_alone(t.suspicion) THEN 'must-run-alone'
                ELSE coalesce(
                    (SELECT coalesce(
                         bar_of(p, moment), CASE WHEN rate_left(p, moment) = 0 THEN 'rate-limited-until' END)
                     FROM providers p WHERE p.name = t.provider), 'provider-limit') END,
           t.actor::text, t.provider::text, t.payload, t.checkpoint, t.attempt, t.retry_count, t.max_retries,
           t.interrupt_count, t.stall_count, t.rate_limited_count, t.timeout_seconds,
           -- What had to wait for others could not start before the last of them had completed. What is held has been
           -- started by nobody now, and from infinity nothing can be subtracted.
           extract(
               epoch FROM t.started_at - CASE WHEN t.available_at <> 'infinity' THEN :startable_since(t) END)::float,
           t.retry_delays, t.concerns, t.job_open, t.user_id::text
    FROM unnest(wanted, tokens) AS claim(task_id, token) LEFT JOIN tasks t ON t.task_id = claim.task_id;
END $$;

-- The tasks just claimed from providers on trial are their trials: one for each, as `free_slots` has seen to.

CREATE FUNCTION begin_trials(on_trial text[], claimed uuid[], moment timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO provider_events (provider, type, at, reason, data)
    SELECT p.name, 'half-open', moment, 'the time of the breaker is over: one task tries',
           jsonb_build_object('task_id', t.task_id)
    FROM providers p JOIN tasks t ON t.provider = p.name
    WHERE p.name = ANY (on_trial) AND t.task_id = ANY (claimed) AND p.breaker_state = 'open';

    UPDATE providers p SET
        trial_token = t.claim_token,
        breaker_state = CASE p.breaker_state WHEN 'open' THEN 'half-open' ELSE p.breaker_state END
    FROM tasks t WHERE t.provider = p.name AND p.name = ANY (on_trial) AND t.task_id = ANY (claimed);
END $$;
