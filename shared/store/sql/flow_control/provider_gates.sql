-- What stands between a provider's waiting tasks and their start. This is the only place that says so: the claim asks
-- under the provider's lock. The dispatcher, `GET /tasks/{id}/why` and `scale_demand` ask without it. Functions that
-- read a table are PL/pgSQL, which keeps its plans: a SQL function that cannot be inlined is planned at every call.

-- A pause that has not been cleared or a breaker that is not closed: once its time is over, one task goes first.
CREATE FUNCTION is_on_trial(p providers) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT p.paused_until IS NOT NULL OR p.breaker_state <> 'closed'
$$;

-- Whether how much may start depends on anything: such a provider is locked before anybody looks.
CREATE FUNCTION is_guarded(p providers) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT coalesce(p.limit_override, p.configured_limit) IS NOT NULL
        OR coalesce(p.rate_override, p.configured_rate) IS NOT NULL OR p.paused OR is_on_trial(p)
$$;

-- The trial counts for as long as a running task carries its token: whatever becomes of its worker, nobody has to
-- remember to take the token back.
CREATE FUNCTION has_trial_running(p providers) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN p.trial_token IS NOT NULL AND EXISTS (
        SELECT 1 FROM tasks t
        WHERE t.provider = p.name AND t.status = 'running' AND t.claim_token = p.trial_token);
END $$;

-- Why nothing of a provider's may start at a moment, in the words of `shared/reasons.py`, or null when something may.
CREATE FUNCTION bar_of(p providers, moment timestamptz) RETURNS text LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN p.paused THEN 'provider-paused'
                WHEN p.paused_until > moment THEN 'rate-limited-until'
                WHEN p.breaker_until > moment THEN 'breaker-open'
                WHEN is_on_trial(p) AND has_trial_running(p) THEN 'on-trial' END;
END $$;

-- The slots that are held: by every running task, and by every other one whose job at the provider is still open.
CREATE FUNCTION held_slots(provider_name text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN running_at(provider_name)
         + (SELECT count(*) FROM tasks t WHERE t.provider = provider_name AND t.job_open AND t.status <> 'running');
END $$;

-- How many tasks may go on waiting for their open jobs. They hold their slots already, so the limit does not count.
CREATE FUNCTION free_resumes(p providers, moment timestamptz) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN bar_of(p, moment) IS NOT NULL THEN 0 WHEN is_on_trial(p) THEN 1 ELSE 1000000 END;
END $$;

-- How many more of a guarded provider's tasks may start: as many as both its limit and its rate have room for.
CREATE FUNCTION free_slots(p providers, moment timestamptz) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN CASE WHEN bar_of(p, moment) IS NOT NULL THEN 0 ELSE least(
        CASE WHEN is_on_trial(p) THEN 1 END,
        rate_left(p, moment),
        coalesce(p.limit_override, p.configured_limit) - held_slots(p.name)) END;
END $$;

-- Of so many due tasks and so many that wait for their open jobs: how many may start, and how many may go on, if a
-- worker is there. On trial a task that goes on is the one that tries.
CREATE FUNCTION startable(
    p providers, due bigint, waiting_for_jobs bigint, moment timestamptz, OUT starts bigint, OUT resumes bigint
) LANGUAGE plpgsql STABLE AS $$
BEGIN
    resumes := least(waiting_for_jobs, free_resumes(p, moment));
    starts := CASE WHEN is_on_trial(p) AND resumes > 0 THEN 0 ELSE greatest(0, least(due, free_slots(p, moment))) END;
END $$;
