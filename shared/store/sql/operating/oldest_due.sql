-- Since when the first of a queue's tasks could have started, or null when none waits: one index
-- probe for each lane and priority, as in due_counts and for the same reason.

CREATE FUNCTION oldest_due(provider_name text, of_queue text) RETURNS timestamptz
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
    RETURN (
        SELECT min(waiting.available_at)
        FROM (VALUES ('fresh'), ('retry')) AS lanes(lane)
        CROSS JOIN generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT t.available_at FROM tasks t
            WHERE t.queue = of_queue AND t.lane = lanes.lane AND t.priority = level.priority
              AND :due_at(now())
            ORDER BY t.available_at LIMIT 1
        ) AS waiting
    );
END $$;
