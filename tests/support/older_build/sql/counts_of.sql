-- How many of these tasks there are, by what the metrics tell apart. The caller counts them once they are committed.

CREATE FUNCTION counts_of(wanted uuid[]) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    IF coalesce(cardinality(wanted), 0) = 0 THEN RETURN '[]'; END IF;
    RETURN (
        SELECT coalesce(jsonb_agg(to_jsonb(counted)), '[]') FROM (
            SELECT t.actor, t.provider, t.status, t.error ->> 'type' AS error_type, count(*) AS tasks
            FROM tasks t WHERE t.task_id = ANY (wanted)
            GROUP BY t.actor, t.provider, t.status, t.error ->> 'type'
        ) AS counted);
END $$;
