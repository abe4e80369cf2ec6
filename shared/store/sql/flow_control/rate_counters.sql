-- Counters with a time to live. Whoever changes one takes its limiter's lock first and looks in a later statement: the
-- sum over a window has no single row that could be locked, and some of its rows may not exist yet. A limiter is the
-- key up to `@`: Dramatiq's limiters write the time behind it. Expired is the same as absent.

CREATE FUNCTION lock_rate_limiters(counters text[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(ordered.limiter) FROM (
        SELECT DISTINCT hashtextextended(split_part(c.key, '@', 1), 0) AS limiter
        FROM unnest(counters) AS c(key) ORDER BY limiter
    ) AS ordered;
END $$;

CREATE FUNCTION add_rate_counter(counter text, amount int, ttl_seconds float) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
BEGIN
    PERFORM lock_rate_limiters(ARRAY[counter]);
    moment := clock_timestamp();
    INSERT INTO rate_counters AS c (key, value, expires_at)
    VALUES (counter, amount, moment + make_interval(secs => ttl_seconds))
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
    WHERE c.expires_at <= moment;
    RETURN FOUND;
END $$;

CREATE FUNCTION move_rate_counter(
    counter text, summed text[], change int, lowest int, highest int, ttl_seconds float
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
    moved  bigint;
    total  bigint;
BEGIN
    PERFORM lock_rate_limiters(counter || summed);
    moment := clock_timestamp();
    SELECT change + coalesce(sum(c.value) FILTER (WHERE c.key = counter), 0),
           change + coalesce(sum(c.value) FILTER (WHERE c.key = ANY (summed)), 0)
    INTO moved, total
    FROM rate_counters c WHERE c.key = ANY (counter || summed) AND c.expires_at > moment;
    -- A bound that is null is none.
    IF moved < lowest OR moved > highest OR total > highest THEN RETURN false; END IF;
    INSERT INTO rate_counters (key, value, expires_at)
    VALUES (counter, moved, moment + make_interval(secs => ttl_seconds))
    ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at;
    RETURN true;
END $$;
