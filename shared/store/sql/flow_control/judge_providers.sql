-- What ended attempts mean for their providers: the breaker and the rate limit. Their callers hold the providers'
-- locks.

-- The breaker's window: the latest results, none too old, none from before the breaker last changed.
CREATE FUNCTION window_of(p providers, rules jsonb, OUT results int, OUT failures int)
LANGUAGE plpgsql STABLE COST 10000 AS $$
BEGIN
    SELECT count(*), count(*) FILTER (WHERE latest.failed) INTO results, failures FROM (
        SELECT r.failed FROM provider_results r
        WHERE r.provider = p.name AND r.at > greatest(
            now() - make_interval(secs => (rules ->> 'breaker_window_seconds')::float), p.breaker_changed_at)
        ORDER BY r.at DESC LIMIT (rules ->> 'breaker_window')::int
    ) AS latest;
END $$;

-- Whether ends may change their provider: one of them is a trial, or says so itself (`telling`), or the provider has
-- failed lately, so that one more result of any kind may fill the breaker's window.
CREATE FUNCTION may_change(p providers, tokens uuid[], telling text[], rules jsonb)
RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT p.trial_token = ANY (tokens) OR p.name = ANY (telling)
        OR (p.breaker_mode = 'auto' AND p.breaker_state = 'closed' AND (window_of(p, rules)).failures > 0)
$$;

-- Whether another task has got through since the last 429 that anybody was told, and since the last `in_a_row` that
-- this one was: then its own request is to blame, and not a limit for all.
CREATE FUNCTION others_passed(t tasks, in_a_row int) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (
        SELECT 1 FROM provider_results r
        WHERE r.provider = t.provider AND NOT r.failed AND r.task_id <> t.task_id AND r.at > greatest(
            (SELECT e.at FROM task_events e WHERE e.task_id = t.task_id AND e.type = 'retry'
             ORDER BY e.seq DESC OFFSET in_a_row - 1 LIMIT 1),
            CASE in_a_row WHEN 1 THEN (
                SELECT e.at FROM provider_events e WHERE e.provider = t.provider AND e.type IN ('pause', 'rate-limited')
                ORDER BY e.event_id DESC LIMIT 1) END))
$$;

CREATE FUNCTION judge_providers(said jsonb, rules jsonb, moment timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    p     providers;
    trial jsonb;
BEGIN
    FOR p IN SELECT * FROM providers WHERE name IN (SELECT s ->> 'provider' FROM jsonb_array_elements(said) AS s)
             ORDER BY name LOOP
        SELECT s INTO trial FROM jsonb_array_elements(said) AS s
        WHERE s ->> 'provider' = p.name AND (s ->> 'claim_token')::uuid = p.trial_token;
        PERFORM end_trial(p, trial, rules, moment) WHERE trial IS NOT NULL;
        PERFORM heed_rate_limit(p.name, s, moment) FROM jsonb_array_elements(said) AS s
        WHERE s ->> 'provider' = p.name AND (s ->> 'rate_limited')::boolean;
        PERFORM judge_window(p.name, rules, moment);
    END LOOP;
END $$;

-- The trial decides, and nothing else does. A success closes the breaker and ends the pause; the provider's own fault
-- opens the breaker again. Any other failure shows that the provider answers something other than 429, which ends the
-- pause and says nothing to the breaker. A cancel, an interrupt and another 429 decide nothing: another trial follows.

CREATE FUNCTION end_trial(p providers, trial jsonb, rules jsonb, moment timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    passed   boolean := trial ->> 'via' = 'complete';
    failed   boolean := (trial ->> 'provider_failed')::boolean AND trial ->> 'via' <> 'cancel';
    answered boolean := trial ->> 'via' IN ('complete', 'retry', 'bury')
                        AND NOT failed AND NOT (trial ->> 'rate_limited')::boolean;
    which    jsonb := jsonb_build_object('task_id', trial ->> 'task_id');
BEGIN
    UPDATE providers SET trial_token = NULL WHERE name = p.name;
    IF p.breaker_mode = 'auto' AND p.breaker_state <> 'closed' AND passed THEN
        UPDATE providers SET breaker_state = 'closed', breaker_until = NULL, breaker_reason = NULL,
                             breaker_changed_at = moment
        WHERE name = p.name;
        PERFORM tell_provider(p.name, 'close', moment, 'the task that tried has completed', which);
    ELSIF p.breaker_mode = 'auto' AND p.breaker_state <> 'closed' AND failed THEN
        PERFORM open_breaker(p.name, 'the task that tried failed: ' || (trial ->> 'message'), which, rules, moment);
    END IF;
    -- A pause that began while the trial was under way is not the one that it was tried for.
    IF p.paused_until <= moment AND answered THEN
        UPDATE providers SET paused_until = NULL, pause_reason = NULL WHERE name = p.name;
        PERFORM tell_provider(p.name, 'resume', moment, 'the task that went first was not told 429', which);
    END IF;
END $$;

-- A 429 pauses the whole provider for the time that it named, within the cap; a longer pause is never shortened. A task
-- that is told so while others pass waits alone.

CREATE FUNCTION heed_rate_limit(name_of text, told jsonb, moment timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    before timestamptz;
    until  timestamptz := moment + make_interval(secs => (told ->> 'wait_seconds')::float);
    which  jsonb := jsonb_build_object('task_id', told ->> 'task_id', 'until', until);
BEGIN
    IF (told ->> 'alone')::boolean THEN
        PERFORM tell_provider(name_of, 'rate-limited', moment,
                              'one task was told 429 while others passed: only that one waits', which);
        RETURN;
    END IF;
    SELECT p.paused_until INTO before FROM providers p WHERE p.name = name_of;
    UPDATE providers p SET
        paused_until = greatest(before, until), pause_reason = told ->> 'message'
    WHERE p.name = name_of AND (before IS NULL OR before < until);
    -- Several are told the same at once: what prolongs a pause by their jitter is not worth a line.
    IF before IS NULL OR before <= moment OR until - before > (until - moment) / 5 THEN
        PERFORM tell_provider(name_of, 'pause', moment, told ->> 'message', which);
    END IF;
END $$;

CREATE FUNCTION judge_window(name_of text, rules jsonb, moment timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    p       providers;
    results int;
    failed  int;
BEGIN
    SELECT * INTO p FROM providers WHERE name = name_of AND breaker_mode = 'auto' AND breaker_state = 'closed';
    IF NOT FOUND THEN RETURN; END IF;
    SELECT w.results, w.failures INTO results, failed FROM window_of(p, rules) AS w;
    IF results >= (rules ->> 'breaker_least_results')::int
       AND failed >= results * (rules ->> 'breaker_failure_ratio')::float THEN
        PERFORM open_breaker(name_of, format('%s of the last %s results were failures', failed, results),
                             jsonb_build_object('results', results, 'failures', failed), rules, moment);
    END IF;
END $$;

CREATE FUNCTION open_breaker(name_of text, why text, facts jsonb, rules jsonb, moment timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    until timestamptz := moment + make_interval(secs => (rules ->> 'breaker_open_seconds')::float);
BEGIN
    UPDATE providers p SET
        breaker_state = 'open', breaker_until = until, breaker_reason = why, breaker_changed_at = moment,
        trial_token = NULL
    WHERE p.name = name_of;
    PERFORM tell_provider(name_of, 'open', moment, why, facts || jsonb_build_object('until', until));
END $$;

CREATE FUNCTION tell_provider(name_of text, kind text, moment timestamptz, why text, facts jsonb)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
BEGIN
    INSERT INTO provider_events (provider, type, at, reason, data) VALUES (name_of, kind, moment, why, facts)
    RETURNING event_id INTO number;
    PERFORM publish_provider(name_of, kind, moment, why, facts, number)
    WHERE kind IN ('pause', 'resume', 'open', 'close');
END $$;

-- About no user's object. A provider has a name and no id: the subject is derived from the name.

CREATE FUNCTION publish_provider(
    name_of text, kind text, moment timestamptz, why text, facts jsonb, number bigint
) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM publish_event(
        md5(name_of)::uuid,
        CASE kind WHEN 'pause' THEN 'provider.paused' WHEN 'resume' THEN 'provider.resumed'
                  WHEN 'open' THEN 'provider.breaker-opened' ELSE 'provider.breaker-closed' END,
        moment, jsonb_build_object(
            'subject', name_of, 'seq', number,
            'data', jsonb_build_object('provider', name_of, 'reason', why, 'until', facts -> 'until')));
END $$;

-- Two results that came at the same moment may each have missed the other; the janitor looks once more.

CREATE FUNCTION judge_windows(rules jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    names text[];
BEGIN
    SELECT array_agg(suspect.name) INTO names FROM (
        SELECT p.name FROM providers p
        WHERE p.breaker_mode = 'auto' AND p.breaker_state = 'closed' AND (window_of(p, rules)).failures > 0
        ORDER BY p.name FOR NO KEY UPDATE
    ) AS suspect;
    PERFORM judge_window(name, rules, clock_timestamp()) FROM unnest(names) AS name;
END $$;
