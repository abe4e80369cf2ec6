-- How many tasks of a provider's queues could start now, by lane, as far as it makes a difference: one index probe for
-- each queue, lane and priority. Nothing may be sorted here, so that only the index serves that has them in order. Left
-- to its statistics, which are old or missing when it matters, the planner may look through all that live once for each
-- probe.

CREATE FUNCTION due_counts(of_queues text[], at_most int) RETURNS TABLE (fresh bigint, retry bigint)
LANGUAGE plpgsql STABLE ROWS 1 SET enable_sort = off AS $$
DECLARE
    floors jsonb := CASE WHEN current_setting('windlass.floors', true) <> '' THEN floors_of(of_queues, now()) END;
    before bigint := pg_stat_get_xact_tuples_returned('tasks_due'::regclass);
BEGIN
    SELECT count(*) FILTER (WHERE waiting.lane = 'fresh'), count(*) FILTER (WHERE waiting.lane = 'retry')
    INTO fresh, retry
    FROM unnest(of_queues) AS of(queue)
    CROSS JOIN (VALUES ('fresh'), ('retry')) AS lanes(lane)
    CROSS JOIN generate_series(0, 9) AS level(priority)
    CROSS JOIN LATERAL (
        SELECT t.lane FROM tasks t
        WHERE t.queue = of.queue AND t.lane = lanes.lane AND t.priority = level.priority
          AND NOT t.job_open AND :due_at(now())
          AND t.available_at >= :floor(floors, of.queue, lanes.lane, level.priority)
        ORDER BY t.available_at LIMIT at_most
    ) AS waiting;
    IF pg_stat_get_xact_tuples_returned('tasks_due'::regclass) - before > fresh + retry + walked_over_many() THEN
        PERFORM remember_floors(of_queues, floors, now());
    END IF;
    RETURN NEXT;
END $$;
