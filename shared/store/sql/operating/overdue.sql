-- What has waited since some time, or what somebody should have moved long ago, counted as far as `at_most` by the
-- index that is made for it. Nothing is sorted, as in `due_counts`.

CREATE FUNCTION expired_before(since timestamptz, at_most int)
RETURNS bigint LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM (
            SELECT 1 FROM tasks t
            WHERE t.status IN ('blocked', 'queued', 'retrying') AND t.expires_at IS NOT NULL AND t.expires_at < since
              AND t.available_at < 'infinity'
            ORDER BY t.expires_at LIMIT at_most) AS expired);
END $$;

CREATE FUNCTION due_since(of_queues text[], only_lane text, since timestamptz, at_most int)
RETURNS bigint LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM (
            SELECT 1 FROM unnest(of_queues) AS its(queue)
            CROSS JOIN (VALUES ('fresh'), ('retry')) AS of(lane)
            CROSS JOIN generate_series(0, 9) AS level(priority)
            CROSS JOIN LATERAL (
                SELECT 1 FROM tasks t
                WHERE t.queue = its.queue AND t.lane = of.lane AND t.priority = level.priority
                  AND :due_at(since)
                ORDER BY t.available_at LIMIT at_most
            ) AS due
            WHERE only_lane IS NULL OR of.lane = only_lane
            LIMIT at_most) AS waiting);
END $$;

-- Blocked tasks that one page of them shows to be waiting for nobody, and those that have long been left to be settled.

CREATE FUNCTION overdue_dependents(late timestamptz, after uuid, page int, at_most int)
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
DECLARE
    looked_at uuid[] := ARRAY(
        SELECT t.task_id FROM tasks t WHERE t.status = 'blocked' AND t.task_id > after ORDER BY t.task_id LIMIT page);
    left_over uuid[] := ARRAY(
        SELECT edge.child_id FROM unsettled u CROSS JOIN LATERAL (
            SELECT d.child_id FROM task_dependencies d WHERE d.parent_id = u.parent_id AND d.child_id > u.settled_to
            ORDER BY d.child_id LIMIT at_most) AS edge
        WHERE u.since < late LIMIT at_most);
BEGIN
    RETURN (
        SELECT count(*) FROM states_of_parents(ARRAY(SELECT DISTINCT unnest(looked_at || left_over))) AS child
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = child.task_id OFFSET 0) AS t
        WHERE t.updated_at < late AND (child.unmet = 0 OR child.failed_parent IS NOT NULL));
END $$;
