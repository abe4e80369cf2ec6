-- When there is next something to do at a provider that could not be done before: a task of these queues becomes due,
-- its pause or its breaker's time is over, or a place becomes free in a rate that something waits for. Null when
-- nothing is known. A look that began at a floor (`floors_of`) is repeated when that is over: who stands before it is
-- seen then. One index probe for each queue, lane and priority, as in `due_counts`.

CREATE FUNCTION next_moment(p providers, of_queues text[]) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    floors jsonb := CASE WHEN current_setting('windlass.floors', true) <> '' THEN floors_of(of_queues, now()) END;
BEGIN
    RETURN least(
        (SELECT min(next.available_at)
         FROM unnest(of_queues) AS of(queue)
         CROSS JOIN (VALUES ('fresh'), ('retry')) AS lanes(lane)
         CROSS JOIN generate_series(0, 9) AS level(priority)
         CROSS JOIN LATERAL (
             SELECT t.available_at FROM tasks t
             WHERE t.queue = of.queue AND t.lane = lanes.lane AND t.priority = level.priority
               AND t.status IN :sources_of_claim AND t.available_at > now() AND t.available_at < 'infinity'
             ORDER BY t.available_at LIMIT 1
         ) AS next),
        CASE WHEN p.paused_until > now() THEN p.paused_until END,
        CASE WHEN p.breaker_until > now() AND p.breaker_until < 'infinity' THEN p.breaker_until END,
        CASE WHEN rate_left(p, now()) = 0 AND (SELECT due.fresh + due.retry > 0 FROM due_counts(of_queues, 1) AS due)
             THEN rate_free_at(p, now()) END,
        CASE WHEN floors IS NOT NULL THEN (
            SELECT min((one.value ->> 'until')::timestamptz) FROM jsonb_each(floors) AS one
            WHERE (one.value ->> 'until')::timestamptz < now() + interval '1 s') END); -- else it is of this very look
END $$;
