-- How many due tasks of a lane of these queues go before one of them: by priority, then by age, as far as `at_most`.
-- Among those of its own priority the index is read no further than to where it stands. Nothing is sorted, as in
-- `due_counts`.

CREATE FUNCTION due_before(
    of_queues text[], of_lane text, of_priority int, since timestamptz, itself uuid, at_most int
)
RETURNS bigint LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM (
            SELECT 1 FROM generate_series(0, of_priority) AS level(priority)
            CROSS JOIN unnest(of_queues) AS of(queue)
            CROSS JOIN LATERAL (
                SELECT 1 FROM tasks t
                WHERE t.queue = of.queue AND t.lane = of_lane AND t.priority = level.priority
                  AND NOT t.job_open AND :due_at(now())
                  AND t.available_at <= CASE WHEN level.priority = of_priority THEN since ELSE 'infinity' END
                  AND (level.priority < of_priority OR (t.available_at, t.task_id) < (since, itself))
                ORDER BY t.available_at LIMIT at_most
            ) AS due
            LIMIT at_most
        ) AS before);
END $$;
