-- Ends attempts: complete, retry, bury or interrupt, as their owner decided, each with what the attempt still had to
-- say (progress, output) numbered before its end. Who does not own the task any more gets no row back and changes
-- nothing; who repeats an end with its token gets the first outcome. With a cancel requested, every way out of
-- `running` but `complete` ends in `cancelled`; a retry that would come after the task has expired ends in `dead`, and
-- so does one that is told 429 for ever while others pass. What an end says about its provider is appended to the
-- provider's results; only where that may change something is the provider locked, before any task. The dependents that
-- it buried come last, without a token. Who asks for the next tasks of some providers in the same call (`asked`) has
-- locked all that has to be (`judged`), and the dispatcher need not be told of a slot that is taken at once.

CREATE FUNCTION end_tasks(endings jsonb, rules jsonb, judged text[] DEFAULT NULL, asked text[] DEFAULT NULL)
RETURNS TABLE (claim_token uuid, status text, actor text, provider text, age_seconds float) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    wanted  uuid[];
    tokens  uuid[];
    longest_pause_seconds float := rules ->> 'longest_pause_seconds';
    moment  timestamptz;
    ended   uuid[];
    left_by uuid[];
    outcome text[];
    actors  text[];
    owners  text[];
    ages    float[];
    final   uuid[];
    heard   jsonb;
    moves   jsonb;
    woken   text[];
    buried  uuid[] := '{}';
BEGIN
    SELECT array_agg(e.task_id), array_agg(e.claim_token) INTO wanted, tokens
    FROM jsonb_to_recordset(endings) AS e(task_id uuid, claim_token uuid);
    IF asked IS NULL THEN
        asked := '{}';
        SELECT l.judged INTO judged FROM lock_for_ends(endings, asked, rules) AS l;
    END IF;
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted) ORDER BY t.task_id FOR NO KEY UPDATE;
    moment := clock_timestamp();

    WITH ending AS (
        SELECT e.*, CASE WHEN t.cancel_requested AND e.transition <> 'complete' THEN 'cancel'
                         WHEN e.transition = 'retry'
                              AND (t.expires_at <= moment + make_interval(secs => wait.seconds)
                                   OR (e.hopeless_if_others_pass IS TRUE AND others_passed(t, t.rate_limited_count)))
                         THEN 'bury'
                         ELSE e.transition END AS via,
               CASE WHEN e.rate_limited AND t.rate_limited_count > 0 THEN others_passed(t, 1) ELSE false END AS alone,
               wait.seconds AS wait_seconds
        FROM jsonb_to_recordset(endings) AS e(
            task_id uuid, attempt int, claim_token uuid, transition text, result jsonb, error jsonb, exit_code int,
            delay_seconds float, retry_cost int, rate_limited boolean, provider_failed boolean,
            hopeless_if_others_pass boolean, timeout_factor float, progress jsonb, checkpoint jsonb, events jsonb,
            proof jsonb, usage jsonb)
        -- OFFSET 0 keeps the other conditions out: each is looked up by its id, and not among all that run.
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = e.task_id OFFSET 0) AS t
        CROSS JOIN LATERAL (SELECT least(coalesce(e.delay_seconds, 0),
                                         CASE WHEN e.rate_limited THEN longest_pause_seconds END) AS seconds) AS wait
        WHERE t.status IN :sources_of_complete AND t.attempt = e.attempt AND t.claim_token = e.claim_token
    ), moved AS (
        UPDATE tasks t SET
            status = CASE e.via WHEN 'complete' THEN :target_of_complete WHEN 'retry' THEN :target_of_retry
                                WHEN 'bury' THEN :target_of_bury WHEN 'interrupt' THEN :target_of_interrupt
                                WHEN 'cancel' THEN :target_of_cancel END,
            result = e.result, error = CASE WHEN e.via = 'complete' THEN NULL
                         WHEN e.via = 'bury' AND e.transition = 'retry' THEN jsonb_set(
                             e.error, CASE WHEN e.hopeless_if_others_pass THEN '{details,others_passed}'::text[]
                                           ELSE '{details,expires_before_retry}' END, 'true')
                         ELSE coalesce(e.error, t.error) END,
            exit_code = e.exit_code, timeout_seconds = t.timeout_seconds * coalesce(e.timeout_factor, 1),
            progress = coalesce(e.progress, t.progress), checkpoint = coalesce(e.checkpoint, t.checkpoint),
            usage = CASE WHEN e.usage IS NULL THEN t.usage ELSE added_usage(t.usage, e.usage) END,
            lane = CASE e.via WHEN 'retry' THEN 'retry' ELSE t.lane END,
            retry_count = t.retry_count + coalesce(e.retry_cost, 0),
            interrupt_count = t.interrupt_count + (e.via = 'interrupt')::int,
            -- Who came to an end of its own has not killed its worker.
            suspicion = CASE WHEN e.retry_cost > 0 THEN 0 ELSE t.suspicion END,
            rate_limited_count = CASE WHEN e.via = 'interrupt' THEN t.rate_limited_count
                                      WHEN e.rate_limited THEN t.rate_limited_count + 1 ELSE 0 END,
            available_at = CASE WHEN e.via IN ('retry', 'interrupt')
                                THEN moment + make_interval(secs => e.wait_seconds)
                                ELSE t.available_at END,
            completed_at = CASE WHEN e.via IN ('complete', 'bury', 'cancel') THEN moment END,
            lease_expires_at = NULL,
            updated_at = moment,
            last_seq = t.last_seq + 1 + coalesce(jsonb_array_length(e.events), 0)
        FROM ending e WHERE t.task_id = e.task_id AND t.task_id = ANY (wanted) -- or a kept plan may read them all
        RETURNING t.task_id, t.claim_token, t.status, t.attempt, t.last_seq, t.user_id, t.actor, t.provider, t.error,
                  t.created_at, t.started_at, t.completed_at, t.life, t.concerns, t.usage, e.via, e.events, e.proof,
                  (extract(epoch FROM moment - t.started_at) * 1000)::bigint AS elapsed_ms,
                  coalesce(e.rate_limited, false) AS rate_limited,
                  coalesce(e.provider_failed, false) AS provider_failed, e.alone, e.wait_seconds
    ), said AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq - 1 - jsonb_array_length(m.events) + line.ordinality, line.event ->> 'type',
               moment, m.attempt, line.event -> 'data'
        FROM moved m, jsonb_array_elements(m.events) WITH ORDINALITY AS line(event, ordinality)
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, m.via, moment, m.attempt,
               jsonb_strip_nulls(jsonb_build_object(
                   'status', m.status, 'elapsed_ms', m.elapsed_ms, 'proof', m.proof, 'usage_so_far', m.usage))
               || CASE WHEN m.error IS NULL OR m.via IN ('interrupt', 'cancel') THEN '{}'
                       ELSE jsonb_build_object('error', m.error) END
        FROM moved m
    ), results AS (
        -- An attempt from before the breaker last changed has nothing to say about how the provider is since.
        INSERT INTO provider_results (provider, at, failed, task_id)
        SELECT m.provider, moment, m.via <> 'complete', m.task_id
        FROM moved m JOIN providers p ON p.name = m.provider
        WHERE (m.via = 'complete' OR (m.provider_failed AND m.via <> 'cancel'))
          AND (p.breaker_changed_at IS NULL OR m.started_at >= p.breaker_changed_at)
    ), tallies AS (
        -- As `tally_tasks` does it, without looking them up once more.
        INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
        SELECT m.user_id, m.provider, m.actor, m.status, count(*) FROM moved m WHERE m.completed_at IS NOT NULL
        GROUP BY m.user_id, m.provider, m.actor, m.status
    )
    SELECT array_agg(m.task_id), array_agg(m.claim_token), array_agg(m.status), array_agg(m.actor),
           array_agg(m.provider), array_agg(extract(epoch FROM m.completed_at - m.created_at)::float),
           array_agg(m.task_id) FILTER (WHERE m.completed_at IS NOT NULL),
           jsonb_agg(jsonb_build_object(
               'task_id', m.task_id, 'provider', m.provider, 'claim_token', m.claim_token, 'via', m.via,
               'rate_limited', m.rate_limited, 'provider_failed', m.provider_failed, 'alone', m.alone,
               'wait_seconds', m.wait_seconds, 'message', left(m.error ->> 'message', 300)))
           FILTER (WHERE m.provider = ANY (judged)),
           array_agg(m.provider) FILTER (
               WHERE m.completed_at IS NULL OR m.provider = ANY (judged) OR m.provider <> ALL (asked)),
           jsonb_agg(move_of(m.task_id, m.last_seq, m.life, m.told, m.via, m.status, moment))
           FILTER (WHERE m.told <> 0)
    INTO ended, left_by, outcome, actors, owners, ages, final, heard, woken, moves
    -- OFFSET 0: the subscriptions are read once for each task, and not wherever they are used.
    FROM (SELECT moved.*, :all_concerns_of(moved) AS told FROM moved OFFSET 0) AS m;

    IF ended IS NOT NULL THEN
        IF heard IS NOT NULL THEN
            PERFORM judge_providers(heard, rules, moment);
        END IF;
        IF final IS NOT NULL THEN
            buried := settle_dependents(final, wanted);
        END IF;
        -- Last: releasing keys can lock tasks, and no other lock may be waited for after that.
        IF moves IS NOT NULL THEN
            PERFORM write_moves(moves);
        END IF;
        PERFORM wake_streams(ended);
        IF woken IS NOT NULL THEN
            PERFORM wake_dispatcher(woken);
        END IF;
    END IF;
    IF cardinality(ended) = cardinality(wanted) THEN
        RETURN QUERY SELECT * FROM unnest(left_by, outcome, actors, owners, ages);
    ELSE
        RETURN QUERY
        SELECT t.claim_token, t.status::text, t.actor::text, t.provider::text,
               extract(epoch FROM t.completed_at - t.created_at)::float
        FROM tasks t
        WHERE t.task_id = ANY (wanted) AND t.claim_token = ANY (tokens) AND t.status NOT IN :sources_of_complete;
    END IF;
    IF cardinality(buried) > 0 THEN
        RETURN QUERY SELECT NULL::uuid, t.status::text, t.actor::text, t.provider::text, NULL::float
        FROM tasks t WHERE t.task_id = ANY (buried);
    END IF;
END $$;

-- Locks the providers that these ends may change (`judged`): by a trial, a 429 or the provider's own fault. And those
-- where a concurrency key gets room: whoever is just parking a task there has to be waited for. With them, in one
-- statement and by name, those that are asked for tasks and that something guards, or that have keys to look after.

CREATE FUNCTION lock_for_ends(endings jsonb, asked text[], rules jsonb, OUT judged text[], OUT guarded text[])
LANGUAGE plpgsql AS $$
DECLARE
    tokens  uuid[];
    owners  text[];
    telling text[];
BEGIN
    SELECT array_agg(e.claim_token), array_agg(t.provider),
           array_agg(t.provider) FILTER (
               WHERE e.rate_limited OR e.provider_failed OR e.concerns & :concern_of_key <> 0)
    INTO tokens, owners, telling
    FROM jsonb_to_recordset(endings)
        AS e(task_id uuid, claim_token uuid, rate_limited boolean, provider_failed boolean, concerns int)
    CROSS JOIN LATERAL (SELECT tasks.provider FROM tasks WHERE tasks.task_id = e.task_id OFFSET 0) AS t;
    SELECT array_agg(l.name) FILTER (WHERE l.is_judged),
           coalesce(array_agg(l.name) FILTER (WHERE l.name = ANY (asked)), '{}') INTO judged, guarded
    FROM (
        -- Who is guarded and asked for is locked anyway, so that the window is looked at once.
        SELECT p.name::text, p.name = ANY (owners) AND may_change(p, tokens, telling, rules) AS is_judged
        FROM providers p
        WHERE (p.name = ANY (asked) AND (is_guarded(p) OR has_keys(p.name)))
           OR (p.name = ANY (owners) AND may_change(p, tokens, telling, rules))
        ORDER BY p.name FOR NO KEY UPDATE
    ) AS l;
END $$;
