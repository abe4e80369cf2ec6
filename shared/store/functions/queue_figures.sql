-- What waits, runs and has ended at each provider: of one user's tasks, or of everybody's. The tallies say how many were
-- submitted, are blocked and have ended; the rest is looked at only as far as that is cheap. All of it is one snapshot,
-- the calling statement's own, as in every STABLE function.

CREATE FUNCTION queue_figures(of_user text, at_most int) RETURNS TABLE (
    provider text, actor text, blocked bigint, queued bigint, running bigint, retrying bigint, fresh bigint,
    retry bigint, scheduled bigint, oldest_at timestamptz, completed bigint, dead bigint, cancelled bigint
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH told AS (
        SELECT c.provider, c.status, c.tasks FROM task_counts c WHERE c.user_id = coalesce(of_user, '')
        UNION ALL
        SELECT y.provider, y.status, y.tasks FROM task_tallies y WHERE of_user IS NULL OR y.user_id = of_user
    ), counted AS (
        SELECT o.provider, coalesce(sum(o.tasks) FILTER (WHERE o.status = 'submitted'), 0) AS submitted,
               coalesce(sum(o.tasks) FILTER (WHERE o.status = 'blocked'), 0)::bigint AS blocked,
               coalesce(sum(o.tasks) FILTER (WHERE o.status = 'completed'), 0)::bigint AS completed,
               coalesce(sum(o.tasks) FILTER (WHERE o.status = 'dead'), 0)::bigint AS dead,
               coalesce(sum(o.tasks) FILTER (WHERE o.status = 'cancelled'), 0)::bigint AS cancelled
        FROM told o GROUP BY o.provider
    ), known AS (
        SELECT coalesce(p.name, c.provider)::text AS name, p.actor::text, greatest(c.blocked, 0) AS blocked,
               coalesce((c.submitted - c.completed - c.dead - c.cancelled)::bigint, 0) AS living,
               coalesce(c.completed, 0) AS completed, coalesce(c.dead, 0) AS dead, coalesce(c.cancelled, 0) AS cancelled
        FROM counted c FULL JOIN providers p ON p.name = c.provider
    )
    SELECT k.name, coalesce(k.actor, live.actor), coalesce(live.blocked, 0), coalesce(live.queued, 0),
           coalesce(live.running, 0), coalesce(live.retrying, 0), coalesce(live.fresh, 0), coalesce(live.retry, 0),
           coalesce(live.scheduled, 0), live.oldest_at, k.completed, k.dead, k.cancelled
    FROM known k LEFT JOIN LATERAL (
        SELECT one.* FROM count_one_by_one(k.name, of_user) AS one WHERE of_user IS NOT NULL AND k.living <= at_most
        UNION ALL
        SELECT many.* FROM count_by_ranges(k.name, of_user, k.living, k.blocked, at_most) AS many
        WHERE of_user IS NULL OR k.living > at_most
    ) AS live ON k.living > 0;
END $$;

-- The living of a user who has few: each is looked at.

CREATE FUNCTION count_one_by_one(provider_name text, of_user text) RETURNS TABLE (
    actor text, blocked bigint, queued bigint, running bigint, retrying bigint, fresh bigint, retry bigint,
    scheduled bigint, oldest_at timestamptz
) LANGUAGE plpgsql STABLE ROWS 1 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT min(t.actor)::text, count(*) FILTER (WHERE t.status = 'blocked'),
           count(*) FILTER (WHERE t.status = 'queued'), count(*) FILTER (WHERE t.status = 'running'),
           count(*) FILTER (WHERE t.status = 'retrying'), count(*) FILTER (WHERE due.now AND t.lane = 'fresh'),
           count(*) FILTER (WHERE due.now AND t.lane = 'retry'),
           count(*) FILTER (WHERE t.status IN :sources_of_claim AND NOT due.now),
           min(t.available_at) FILTER (WHERE due.now)
    -- OFFSET 0: only the user's own are read, not all that wait for the provider.
    FROM (SELECT * FROM tasks WHERE tasks.user_id = of_user AND tasks.status IN :sources_of_cancel OFFSET 0) AS t
    CROSS JOIN LATERAL (SELECT t.status IN :sources_of_claim AND t.available_at <= now() AS now) AS due
    WHERE t.provider = provider_name;
END $$;

-- The living of a provider, however many wait. What runs or is rung for is few, and looked at; what waits is read from
-- its index in four ranges: each lane, due and scheduled. A range of the fresh lane that is longer than `at_most` is
-- what remains of the living when all else has been counted; fresh tasks are all `queued`. Should both be that long,
-- the one that is due is counted to its end, and so is the lane of retries, where both states wait. Nothing is sorted,
-- as in `due_counts`.

CREATE FUNCTION count_by_ranges(provider_name text, of_user text, living bigint, told_blocked bigint, at_most int)
RETURNS TABLE (
    actor text, blocked bigint, queued bigint, running bigint, retrying bigint, fresh bigint, retry bigint,
    scheduled bigint, oldest_at timestamptz
) LANGUAGE plpgsql STABLE ROWS 1 SET enable_sort = off AS $$
#variable_conflict use_variable
DECLARE
    held      record;
    later     record;
    due       record;
    failed    record;
    remaining bigint;
BEGIN
    SELECT min(t.actor)::text AS actor, count(*) FILTER (WHERE t.status = 'running') AS running,
           count(*) FILTER (WHERE t.status = 'queued') AS queued,
           count(*) FILTER (WHERE t.status = 'retrying') AS retrying,
           count(*) FILTER (WHERE t.is_due AND t.lane = 'fresh') AS fresh,
           count(*) FILTER (WHERE t.is_due AND t.lane = 'retry') AS retry,
           count(*) FILTER (WHERE NOT t.is_due) AS scheduled, min(t.available_at) FILTER (WHERE t.is_due) AS oldest_at
    INTO held FROM (
        SELECT r.actor, r.status, r.user_id, r.lane, r.available_at, NULL::boolean AS is_due
        FROM tasks r WHERE r.provider = provider_name AND r.status = 'running'
        UNION ALL
        SELECT w.actor, w.status, w.user_id, w.lane, w.available_at, w.available_at <= now()
        FROM tasks w
        WHERE w.provider = provider_name AND w.status IN :sources_of_claim AND w.doorbell_token IS NOT NULL
    ) AS t WHERE of_user IS NULL OR t.user_id = of_user;
    SELECT * INTO failed FROM count_range(provider_name, 'retry', '-infinity', 'infinity', of_user, NULL);
    SELECT * INTO later FROM count_range(provider_name, 'fresh', now(), 'infinity', of_user, at_most);
    SELECT * INTO due FROM count_range(provider_name, 'fresh', '-infinity', now(), of_user, at_most);
    IF later.is_cut_off AND due.is_cut_off THEN
        SELECT * INTO due FROM count_range(provider_name, 'fresh', '-infinity', now(), of_user, NULL);
    END IF;
    remaining := living - told_blocked - held.running - held.queued - held.retrying - failed.tasks;
    IF later.is_cut_off THEN
        later.tasks := greatest(later.tasks, remaining - due.tasks);
    ELSIF due.is_cut_off THEN
        due.tasks := greatest(due.tasks, remaining - later.tasks);
    END IF;
    actor := coalesce(held.actor, failed.actor, due.actor, later.actor);
    blocked := told_blocked;
    running := held.running;
    queued := held.queued + due.tasks + later.tasks + failed.tasks - failed.retrying;
    retrying := held.retrying + failed.retrying;
    fresh := held.fresh + due.tasks;
    retry := held.retry + failed.due;
    scheduled := held.scheduled + later.tasks + failed.tasks - failed.due;
    oldest_at := least(held.oldest_at, failed.oldest_at, due.oldest_at);
    IF of_user IS NULL OR due.is_cut_off THEN
        oldest_at := least(oldest_at, first_of_the_fresh(provider_name, of_user));
    END IF;
    RETURN NEXT;
END $$;

-- One lane's tasks that wait unrung for a time between two moments, as far as `at_most` of them (null: all).

CREATE FUNCTION count_range(
    provider_name text, of_lane text, later_than timestamptz, until timestamptz, of_user text, at_most int)
RETURNS TABLE (actor text, tasks bigint, due bigint, retrying bigint, oldest_at timestamptz, is_cut_off boolean)
LANGUAGE plpgsql STABLE ROWS 1 SET enable_sort = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT min(t.actor)::text, count(*) FILTER (WHERE own.it), count(*) FILTER (WHERE own.it AND t.available_at <= now()),
           count(*) FILTER (WHERE own.it AND t.status = 'retrying'),
           min(t.available_at) FILTER (WHERE own.it AND t.available_at <= now()), count(*) >= at_most IS TRUE
    FROM (
        SELECT one.* FROM generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT w.actor, w.status, w.user_id, w.available_at FROM tasks w
            WHERE w.provider = provider_name AND w.lane = of_lane AND w.priority = level.priority
              AND w.status IN :sources_of_claim AND w.doorbell_token IS NULL
              AND w.available_at > later_than AND w.available_at <= until
            ORDER BY w.available_at LIMIT at_most
        ) AS one
        LIMIT at_most
    ) AS t
    CROSS JOIN LATERAL (SELECT of_user IS NULL OR t.user_id = of_user AS it) AS own;
END $$;

-- Since when the first fresh task that is due and not rung for has waited.

CREATE FUNCTION first_of_the_fresh(provider_name text, of_user text)
RETURNS timestamptz LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
    RETURN (
        SELECT min(first.available_at) FROM generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT t.available_at FROM tasks t
            WHERE t.provider = provider_name AND t.lane = 'fresh' AND t.priority = level.priority
              AND t.status IN :sources_of_claim AND t.doorbell_token IS NULL AND t.available_at <= now()
              AND (of_user IS NULL OR t.user_id = of_user)
            ORDER BY t.available_at LIMIT 1
        ) AS first);
END $$;
