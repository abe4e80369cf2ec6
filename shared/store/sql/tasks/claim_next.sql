-- Gives a worker that has free places the next tasks of its queues: who is next is decided here, at the start, over all
-- queues of a provider, by lane, priority and age. It is asked for queues, with the tokens that the worker has chosen
-- for its places; how many of them are used is the answer. The calls of one worker come one after the other, and what
-- it has recalled (below) is void. Providers that something guards are locked before anybody looks; one that comes to
-- be guarded just then grants nothing to who has not locked it. Tasks are locked last, and nobody is waited for:
-- whoever has locked something else before may call this. Who only goes on waiting for an open job comes first: it
-- holds its slot already. After a pause and while a breaker is half-open one task goes first: its claim token becomes
-- the provider's trial token. Whose concurrency key is full is parked. Who is suspected of killing workers is left to
-- `claim_tasks`, and who is to be left `aside` to nobody. A row without a task is a word about a queue: `more` is due
-- there than was given, or a `suspect` is.

CREATE FUNCTION claim_next(
    of_queues text[], places int[], tokens uuid[], aside uuid[], claimant text, epoch int, lease_seconds float,
    locked text[] DEFAULT NULL
)
RETURNS TABLE (
    claim_token uuid, task_id uuid, actor text, provider text, payload jsonb, checkpoint jsonb, attempt int,
    retry_count int, max_retries int, interrupt_count int, stall_count int, rate_limited_count int,
    timeout_seconds float, waited_seconds float, retry_delays jsonb, concerns int, job_open boolean, is_guarded boolean,
    user_id text, queue text, word text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment   timestamptz;
    asked    record;
    turn     record;
    chosen   uuid[] := '{}';
    on_trial text[] := '{}';
    rated    text[] := '{}';
    guarded  text[] := '{}';
    passed   text[] := '{}';
    queues   text[] := '{}';
    words    text[] := '{}';
BEGIN
    IF locked IS NULL THEN
        PERFORM take_turn(claimant);
        locked := lock_guarded(of_queues);
    END IF;
    moment := clock_timestamp();

    FOR asked IN
        SELECT p AS provider, p.name, is_guarded(p) AS guarded, is_on_trial(p) AS trial,
               rate_in_force(p) IS NOT NULL AS has_rate, of.queues, of.places, of.has_keys
        FROM (
            SELECT q.provider AS name, array_agg(q.queue::text) AS queues, sum(one.places)::int AS places,
                   bool_or(a.concurrency_limit IS NOT NULL) AS has_keys
            FROM unnest(of_queues, places) AS one(queue, places)
            JOIN queues q ON q.queue = one.queue LEFT JOIN actors a ON a.name = q.actor GROUP BY q.provider
        ) AS of JOIN providers p ON p.name = of.name
        -- Of a worker that has recalled what it asked for in this epoch, nothing is granted.
        WHERE NOT EXISTS (SELECT 1 FROM workers w WHERE w.worker_id = claimant AND w.claim_epoch > epoch)
        ORDER BY p.name
    LOOP
        EXIT WHEN cardinality(chosen) >= cardinality(tokens);
        CONTINUE WHEN asked.guarded AND asked.name <> ALL (locked);
        SELECT * INTO turn FROM next_tasks(
            asked.provider, asked.queues, least(asked.places, cardinality(tokens) - cardinality(chosen)), aside,
            asked.has_keys AND asked.name = ANY (locked), lease_seconds, moment);
        chosen := chosen || turn.chosen;
        queues := queues || turn.queues;
        words := words || turn.words;
        IF turn.passed THEN
            passed := passed || asked.name;
        END IF;
        IF asked.guarded THEN
            guarded := guarded || asked.name;
        END IF;
        IF cardinality(turn.chosen) > 0 AND asked.trial THEN
            on_trial := on_trial || asked.name;
        END IF;
        IF cardinality(turn.chosen) > 0 AND asked.has_rate THEN
            rated := rated || asked.name;
        END IF;
    END LOOP;

    IF cardinality(chosen) > 0 THEN
        RETURN QUERY
        WITH moved AS (
            UPDATE tasks t SET
                status = :target_of_claim, attempt = t.attempt + 1, claim_token = tokens[c.place],
                claim_xid = pg_current_xact_id(),
                worker_id = claimant, started_at = moment, heartbeat_at = moment,
                lease_expires_at = moment + make_interval(secs => lease_seconds),
                progress = NULL, report_count = 0, turn_at = NULL, updated_at = moment, last_seq = t.last_seq + 1
            -- Said twice: a plan that is kept from an empty table would read all tasks to join them.
            FROM unnest(chosen) WITH ORDINALITY AS c(task_id, place)
            WHERE t.task_id = c.task_id AND t.task_id = ANY (chosen)
              -- Checked again, now that they are locked: their group may have stopped since they were chosen.
              AND (t.group_id IS NULL OR t.job_open OR NOT :is_stopped(t))
            RETURNING t.*
        ), events AS (
            INSERT INTO task_events (task_id, seq, type, at, attempt, data)
            SELECT m.task_id, m.last_seq, 'claim', moment, m.attempt,
                   jsonb_build_object('status', m.status, 'worker_id', claimant, 'elapsed_ms', 0)
            FROM moved m
        )
        SELECT m.claim_token, m.task_id, m.actor::text, m.provider::text, m.payload, m.checkpoint, m.attempt,
               m.retry_count, m.max_retries, m.interrupt_count, m.stall_count, m.rate_limited_count, m.timeout_seconds,
               extract(epoch FROM moment - :startable_since(m))::float,
               m.retry_delays, m.concerns, m.job_open, m.provider = ANY (guarded), m.user_id::text, m.queue, NULL
        FROM moved m;
        IF cardinality(on_trial) > 0 THEN
            PERFORM begin_trials(on_trial, chosen, moment);
        END IF;
        IF cardinality(rated) > 0 THEN
            PERFORM take_places(rated, chosen, moment);
        END IF;
        PERFORM wake_streams(chosen);
    END IF;
    IF cardinality(passed) > 0 THEN
        PERFORM wake_dispatcher(passed);
    END IF;
    RETURN QUERY
    SELECT NULL::uuid, NULL::uuid, NULL, NULL, NULL::jsonb, NULL::jsonb, NULL::int, NULL::int, NULL::int, NULL::int,
           NULL::int, NULL::int, NULL::float, NULL::float, NULL::jsonb, NULL::int, NULL::boolean, NULL::boolean, NULL,
           said.queue, said.word
    FROM unnest(queues, words) AS said(queue, word);
END $$;

-- The calls of one worker go one after the other: who repeats one whose answer was lost waits for the one it repeats.

CREATE FUNCTION take_turn(claimant text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('windlass turns'), hashtext(claimant));
END $$;

-- Locks the providers of these queues that something guards, or that have keys to look after, and names them.

CREATE FUNCTION lock_guarded(of_queues text[]) RETURNS text[] LANGUAGE plpgsql AS $$
BEGIN
    RETURN ARRAY(
        SELECT p.name::text FROM providers p
        WHERE p.name IN (SELECT q.provider FROM queues q WHERE q.queue = ANY (of_queues))
          AND (is_guarded(p) OR has_keys(p.name))
        ORDER BY p.name FOR NO KEY UPDATE);
END $$;

CREATE FUNCTION has_keys(provider_name text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM queues q JOIN actors a ON a.name = q.actor
        WHERE q.provider = provider_name AND a.concurrency_limit IS NOT NULL);
END $$;

-- What a worker runs under tokens whose call was not answered: it may have been done, or not, or may still come. From
-- here on it may not: calls of an earlier epoch than this grant nothing. The leases begin anew, for whoever recalls
-- them knows no other time.

CREATE FUNCTION recall_claims(claimant text, tokens uuid[], new_epoch int, lease_seconds float)
RETURNS TABLE (
    claim_token uuid, task_id uuid, actor text, provider text, payload jsonb, checkpoint jsonb, attempt int,
    retry_count int, max_retries int, interrupt_count int, stall_count int, rate_limited_count int,
    timeout_seconds float, waited_seconds float, retry_delays jsonb, concerns int, job_open boolean, is_guarded boolean,
    user_id text, queue text, word text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz;
BEGIN
    PERFORM take_turn(claimant);
    UPDATE workers w SET claim_epoch = new_epoch WHERE w.worker_id = claimant AND w.claim_epoch < new_epoch;
    PERFORM 1 FROM tasks t
    WHERE t.status = 'running' AND t.worker_id = claimant AND t.claim_token = ANY (tokens)
    ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();
    RETURN QUERY
    UPDATE tasks t SET heartbeat_at = moment, lease_expires_at = moment + make_interval(secs => lease_seconds)
    WHERE t.status = 'running' AND t.worker_id = claimant AND t.claim_token = ANY (tokens)
      AND t.lease_expires_at > moment
    RETURNING t.claim_token, t.task_id, t.actor::text, t.provider::text, t.payload, t.checkpoint, t.attempt,
              t.retry_count, t.max_retries, t.interrupt_count, t.stall_count, t.rate_limited_count, t.timeout_seconds,
              extract(epoch FROM t.started_at - :startable_since(t))::float,
              t.retry_delays, t.concerns, t.job_open, true, t.user_id::text, t.queue, NULL::text;
END $$;
