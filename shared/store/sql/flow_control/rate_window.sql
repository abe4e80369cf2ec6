-- The sliding window of a provider's rate, on the provider's own row: entry i of `rate_moments` and `rate_counts` says
-- that so many places were taken, the last of them at that moment. Takings within one slice, a twentieth of the
-- window, share an entry, so that there are never many. An entry counts for one slice longer than the window: the
-- provider sees calls a little after they took their places, and not all equally late. So a full rate is used up to
-- nine tenths, and never over. Another rate goes on with the same moments. What looks is PL/pgSQL, which keeps its
-- plans, and reads nothing but the row that it is given.

CREATE FUNCTION rate_in_force(p providers) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(p.rate_override, p.configured_rate)
$$;

CREATE FUNCTION slice_of(rate jsonb) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
    SELECT make_interval(secs => (rate ->> 'per_seconds')::float / 20)
$$;

-- For how long a place that was taken counts.
CREATE FUNCTION reach_of(rate jsonb) RETURNS interval LANGUAGE sql IMMUTABLE AS $$
    SELECT 21 * slice_of(rate)
$$;

-- How many of a provider's tasks the rate lets start at a moment; null when it has none.
CREATE FUNCTION rate_left(p providers, moment timestamptz) RETURNS int LANGUAGE plpgsql STABLE AS $$
DECLARE
    rate jsonb := rate_in_force(p);
BEGIN
    IF rate IS NULL THEN RETURN NULL; END IF;
    RETURN greatest(0, (rate ->> 'limit')::int - (
        SELECT coalesce(sum(taken.places), 0) FROM unnest(p.rate_moments, p.rate_counts) AS taken(at, places)
        WHERE taken.at + reach_of(rate) > moment));
END $$;

-- When the next place becomes free, should all that are left be taken at once; null when there is no rate, or one that
-- lets nothing start. A rate that was lowered waits until fewer than its limit count.
CREATE FUNCTION rate_free_at(p providers, moment timestamptz) RETURNS timestamptz LANGUAGE plpgsql STABLE AS $$
DECLARE
    rate jsonb := rate_in_force(p);
BEGIN
    IF rate IS NULL THEN RETURN NULL; END IF;
    RETURN (
        SELECT min(entry.at) + reach_of(rate) FROM (
            SELECT taken.at, sum(taken.places) OVER (
                       ORDER BY taken.at DESC ROWS UNBOUNDED PRECEDING) - taken.places AS later
            FROM (
                SELECT * FROM unnest(p.rate_moments, p.rate_counts)
                UNION ALL SELECT moment, rate_left(p, moment)
            ) AS taken(at, places)
            WHERE taken.places > 0 AND taken.at + reach_of(rate) > moment
        ) AS entry
        WHERE entry.later < (rate ->> 'limit')::int);
END $$;

-- The window with so many places more, and without what counts no longer.
CREATE FUNCTION rate_window_with(p providers, more bigint, moment timestamptz)
RETURNS TABLE (moments timestamptz[], counts int[]) LANGUAGE plpgsql STABLE ROWS 1 AS $$
DECLARE
    rate jsonb := rate_in_force(p);
BEGIN
    RETURN QUERY
    SELECT array_agg(entry.at ORDER BY entry.at), array_agg(entry.places::int ORDER BY entry.at) FROM (
        SELECT max(taken.at) AS at, sum(taken.places) AS places
        FROM (
            SELECT * FROM unnest(p.rate_moments, p.rate_counts) UNION ALL SELECT moment, more
        ) AS taken(at, places)
        WHERE taken.at + reach_of(rate) > moment
        GROUP BY floor(extract(epoch FROM taken.at) / extract(epoch FROM slice_of(rate)))
    ) AS entry;
END $$;

-- The tasks just claimed have taken their places, but for those that only go on waiting for an open job. The providers
-- are locked.
CREATE FUNCTION take_places(rated text[], claimed uuid[], moment timestamptz) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE providers p
    SET (rate_moments, rate_counts) = (SELECT w.moments, w.counts FROM rate_window_with(p, started.tasks, moment) AS w)
    FROM (
        SELECT t.provider, count(*) AS tasks
        -- One by one, as the claim itself looks at them.
        FROM unnest(claimed) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        WHERE NOT t.job_open AND t.provider = ANY (rated) GROUP BY t.provider
    ) AS started
    WHERE p.name = started.provider;
END $$;

-- One more place for an attempt that runs. No row when it is taken or none is needed; else in how many seconds to ask
-- again (null: nobody can tell), and the rate that it waits for. Who only waits locks nothing.
CREATE FUNCTION take_rate(provider_name text)
RETURNS TABLE (again_seconds float, rate_limit int, per_seconds int) LANGUAGE plpgsql AS $$
DECLARE
    p      providers;
    moment timestamptz;
BEGIN
    SELECT * INTO p FROM providers WHERE name = provider_name;
    moment := clock_timestamp();
    IF rate_left(p, moment) > 0 THEN
        SELECT * INTO p FROM providers WHERE name = provider_name FOR NO KEY UPDATE;
        moment := clock_timestamp();
        IF rate_left(p, moment) > 0 THEN
            UPDATE providers SET (rate_moments, rate_counts) = (
                SELECT w.moments, w.counts FROM rate_window_with(p, 1, moment) AS w)
            WHERE name = provider_name;
            RETURN;
        END IF;
    END IF;
    IF rate_in_force(p) IS NULL THEN RETURN; END IF;
    RETURN QUERY
    SELECT extract(epoch FROM rate_free_at(p, moment) - moment)::float,
           (rate_in_force(p) ->> 'limit')::int, (rate_in_force(p) ->> 'per_seconds')::int;
END $$;
