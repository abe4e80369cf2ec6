-- What waits, runs and has ended in each queue: of one user's tasks, or of everybody's. The tallies say how many
-- were submitted, are blocked and have ended; the rest is looked at only as far as that is cheap. All of it is one
-- snapshot, the calling statement's own, as in every STABLE function.

CREATE FUNCTION queue_figures(of_user text, at_most int) RETURNS TABLE (
    provider text, actor text, blocked bigint, queued bigint, running bigint, retrying bigint, fresh bigint,
    retry bigint, scheduled bigint, oldest_at timestamptz, completed bigint, dead bigint, cancelled bigint
) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    WITH told AS (
        SELECT c.provider, c.actor, c.status, c.tasks FROM task_counts c WHERE c.user_id = coalesce(of_user, '')
        UNION ALL
        SELECT y.provider, coalesce(nullif(y.actor, ''), p.actor, ''), y.status, y.tasks
        FROM task_tallies y LEFT JOIN providers p ON p.name = y.provider WHERE of_user IS NULL OR y.user_id = of_user
    ), counted AS (
        SELECT o.provider, o.actor, coalesce(sum(o.tasks) FILTER (WHERE o.status = 'submitted'), 0) AS submitted,
               coalesce(sum(o.tasks) FILTER (WHERE o.status = 'blocked'), 0)::bigint AS blocked,
               coalesce(sum(o.tasks) FILTER (WHERE o.status = 'completed'), 0)::bigint AS completed,
               coalesce(sum(o.tasks) FILTER (WHERE o.status = 'dead'), 0)::bigint AS dead,
               coalesce(sum(o.tasks) FILTER (WHERE o.status = 'cancelled'), 0)::bigint AS cancelled
        FROM told o GROUP BY o.provider, o.actor
    ), known AS (
        SELECT coalesce(q.provider, c.provider)::text AS provider, coalesce(q.actor, c.actor)::text AS actor,
               greatest(c.blocked, 0) AS blocked,
               coalesce((c.submitted - c.completed - c.dead - c.cancelled)::bigint, 0) AS living,
               coalesce(c.completed, 0) AS completed, coalesce(c.dead, 0) AS dead, coalesce(c.cancelled, 0) AS cancelled
        FROM counted c FULL JOIN queues q ON q.provider = c.provider AND q.actor = c.actor
    )
    SELECT k.provider, nullif(k.actor, ''), coalesce(live.blocked, 0), coalesce(live.queued, 0),
           coalesce(live.running, 0), coalesce(live.retrying, 0), coalesce(live.fresh, 0), coalesce(live.retry, 0),
           coalesce(live.scheduled, 0), live.oldest_at, k.completed, k.dead, k.cancelled
    FROM known k
    LEFT JOIN LATERAL count_living(
        k.provider, k.actor || '.' || k.provider, of_user, k.living, k.blocked, at_most) AS live ON true;
END $$;

CREATE FUNCTION count_living(
    provider_name text, of_queue text, of_user text, living bigint, told_blocked bigint, at_most int
) RETURNS TABLE (
    blocked bigint, queued bigint, running bigint, retrying bigint, fresh bigint, retry bigint,
    scheduled bigint, oldest_at timestamptz
) LANGUAGE plpgsql STABLE ROWS 1 AS $$
BEGIN
    IF living > 0 AND of_user IS NOT NULL AND living <= at_most THEN
        RETURN QUERY SELECT * FROM count_one_by_one(of_queue, of_user);
    ELSIF living > 0 THEN
        RETURN QUERY SELECT * FROM count_by_ranges(
            provider_name, of_queue, of_user, living, told_blocked, at_most);
    END IF;
END $$;

-- The living of a user who has few: each is looked at, found by the index of users. With pages as dear as they are by
-- default the planner would rather read all that live, which are stored in order.

CREATE FUNCTION count_one_by_one(of_queue text, of_user text) RETURNS TABLE (
    blocked bigint, queued bigint, running bigint, retrying bigint, fresh bigint, retry bigint,
    scheduled bigint, oldest_at timestamptz
) LANGUAGE plpgsql STABLE ROWS 1 SET random_page_cost = 0.02 SET seq_page_cost = 0.02 AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT count(*) FILTER (WHERE t.status = 'blocked'),
           count(*) FILTER (WHERE t.status = 'queued'), count(*) FILTER (WHERE t.status = 'running'),
           count(*) FILTER (WHERE t.status = 'retrying'), count(*) FILTER (WHERE due.now AND t.lane = 'fresh'),
           count(*) FILTER (WHERE due.now AND t.lane = 'retry'),
           count(*) FILTER (WHERE t.status IN :sources_of_claim AND NOT due.now),
           min(t.available_at) FILTER (WHERE due.now)
    -- OFFSET 0: only the user's own are read, not all that wait in the queue.
    FROM (SELECT * FROM tasks WHERE tasks.user_id = of_user AND tasks.status IN :sources_of_cancel OFFSET 0) AS t
    CROSS JOIN LATERAL (SELECT t.status IN :sources_of_claim AND t.available_at <= now() AS now) AS due
    WHERE t.queue = of_queue;
END $$;

-- The living of a queue, however many wait. What runs or waits as a retry is looked at; what is fresh
-- is read from its index in two ranges, due and scheduled. A range that is longer than `at_most` is what remains of the
-- living when all else has been counted; fresh tasks are all `queued`. Should both be that long, one is counted whole:
-- the scheduled, if they are no more than half of all that wait in the queue, else the due.

CREATE FUNCTION count_by_ranges(
    provider_name text, of_queue text, of_user text, living bigint, told_blocked bigint, at_most int
) RETURNS TABLE (
    blocked bigint, queued bigint, running bigint, retrying bigint, fresh bigint, retry bigint,
    scheduled bigint, oldest_at timestamptz
) LANGUAGE plpgsql STABLE ROWS 1 AS $$
#variable_conflict use_variable
DECLARE
    held      record;
    due       bigint;
    later     bigint;
    remaining bigint;
BEGIN
    SELECT count(*) FILTER (WHERE t.status = 'running') AS running,
           count(*) FILTER (WHERE t.status = 'queued') AS queued,
           count(*) FILTER (WHERE t.status = 'retrying') AS retrying,
           count(*) FILTER (WHERE t.is_due AND t.lane = 'fresh') AS fresh,
           count(*) FILTER (WHERE t.is_due AND t.lane = 'retry') AS retry,
           count(*) FILTER (WHERE NOT t.is_due) AS scheduled, min(t.available_at) FILTER (WHERE t.is_due) AS oldest_at
    INTO held FROM (
        SELECT r.status, r.user_id, r.lane, r.available_at, NULL::boolean AS is_due
        FROM tasks r WHERE r.provider = provider_name AND r.queue = of_queue AND r.status = 'running'
        UNION ALL
        SELECT w.status, w.user_id, w.lane, w.available_at, w.available_at <= now() FROM tasks w
        WHERE w.queue = of_queue AND w.lane = 'retry' AND w.status IN :sources_of_claim
    ) AS t WHERE of_user IS NULL OR t.user_id = of_user;
    remaining := living - told_blocked - held.running - held.queued - held.retrying;

    later := count_fresh(of_queue, now(), 'infinity', of_user, at_most);
    due := count_fresh(of_queue, '-infinity', now(), of_user, at_most);
    IF later IS NULL AND due IS NULL THEN
        later := count_many(of_queue, now(), 'infinity', of_user, half_of(of_queue));
    END IF;
    IF later IS NULL AND due IS NULL THEN
        due := count_many(of_queue, '-infinity', now(), of_user, NULL);
    END IF;
    due := coalesce(due, greatest(remaining - later, 0));
    later := coalesce(later, greatest(remaining - due, 0));

    blocked := told_blocked;
    running := held.running;
    queued := held.queued + due + later;
    retrying := held.retrying;
    fresh := held.fresh + due;
    retry := held.retry;
    scheduled := held.scheduled + later;
    oldest_at := least(held.oldest_at, first_of_the_fresh(of_queue, of_user));
    RETURN NEXT;
END $$;

-- How many fresh tasks wait for a time between two moments; null when there are more than can be told from the
-- first `at_most`. Nothing but the index is read, and nothing is sorted, as in `due_counts`.

CREATE FUNCTION count_fresh(
    of_queue text, later_than timestamptz, until timestamptz, of_user text, at_most int
)
RETURNS bigint LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    looked_at bigint;
    own       bigint;
BEGIN
    SELECT count(*), count(*) FILTER (WHERE of_user IS NULL OR waiting.user_id = of_user) INTO looked_at, own
    FROM (
        SELECT one.user_id FROM generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT t.user_id FROM tasks t
            WHERE t.queue = of_queue AND t.lane = 'fresh' AND t.priority = level.priority
              AND t.status IN :sources_of_claim
              AND t.available_at > later_than AND t.available_at <= until
            ORDER BY t.available_at LIMIT at_most
        ) AS one LIMIT at_most
    ) AS waiting;
    RETURN CASE WHEN looked_at < at_most THEN own END;
END $$;

-- The same, where there are very many, and how far it reads is no matter of an exact number: null when there are more
-- than `at_most`. Each priority is asked for by itself: a row then passes through two nodes of the plan, and not six.

CREATE FUNCTION count_many(
    of_queue text, later_than timestamptz, until timestamptz, of_user text, at_most bigint
)
RETURNS bigint LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    seen      bigint;
    seen_own  bigint;
    looked_at bigint := 0;
    own       bigint := 0;
BEGIN
    FOR of_priority IN 0..9 LOOP
        SELECT count(*), count(*) FILTER (WHERE waiting.user_id = of_user) INTO seen, seen_own
        FROM (
            SELECT t.user_id FROM tasks t
            WHERE t.queue = of_queue AND t.lane = 'fresh' AND t.priority = of_priority
              AND t.status IN :sources_of_claim
              AND t.available_at > later_than AND t.available_at <= until
            ORDER BY t.available_at LIMIT at_most - looked_at + 1
        ) AS waiting;
        looked_at := looked_at + seen;
        own := own + seen_own;
        IF looked_at > at_most THEN RETURN NULL; END IF;
    END LOOP;
    RETURN CASE WHEN of_user IS NULL THEN looked_at ELSE own END;
END $$;

-- About half of all that waits in a queue, whoever's it is.

CREATE FUNCTION half_of(of_queue text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT coalesce(sum(CASE told.status WHEN 'submitted' THEN told.tasks ELSE -told.tasks END), 0)::bigint / 2
        FROM (
            SELECT c.provider, c.actor, c.status, c.tasks FROM task_counts c WHERE c.user_id = ''
            UNION ALL
            SELECT y.provider, y.actor, y.status, y.tasks FROM task_tallies y
        ) AS told WHERE told.actor || '.' || told.provider = of_queue);
END $$;

-- Since when the first fresh task that is due has waited.

CREATE FUNCTION first_of_the_fresh(of_queue text, of_user text)
RETURNS timestamptz LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
    RETURN (
        SELECT min(first.available_at) FROM generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT t.available_at FROM tasks t
            WHERE t.queue = of_queue AND t.lane = 'fresh' AND t.priority = level.priority
              AND t.status IN :sources_of_claim AND t.available_at <= now()
              AND (of_user IS NULL OR t.user_id = of_user)
            ORDER BY t.available_at LIMIT 1
        ) AS first);
END $$;
