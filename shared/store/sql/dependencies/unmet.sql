-- What a task still waits for, said once for everybody who counts: `unmet` is the edges that are open, and one more
-- while a person is to be asked. An edge is met when its parent has completed, or, where that is wished, has ended in
-- any way; one that waits for a completion has failed when its parent has ended otherwise. What `asks` waits for
-- nothing but a person's word.

CREATE FUNCTION is_open(status text, met_on text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE met_on WHEN 'ended' THEN status NOT IN ('completed', 'dead', 'cancelled') ELSE status <> 'completed' END
$$;

CREATE FUNCTION is_to_be_asked(approval jsonb) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT approval IS NOT NULL AND approval ->> 'decision' IS DISTINCT FROM 'approved'
$$;

CREATE FUNCTION waits_of(of_task uuid, approval jsonb) RETURNS TABLE (unmet int, failed_parent uuid, asks boolean)
LANGUAGE sql STABLE ROWS 1 AS $$ -- becomes a part of the statement that asks: a call for each takes longer
    SELECT counted.unmet + is_to_be_asked(approval)::int, counted.failed_parent,
           counted.unmet = 0 AND is_to_be_asked(approval)
    FROM (
        SELECT (count(*) FILTER (WHERE is_open(parent.status, d.met_on)))::int AS unmet,
               (min(d.parent_id::text) FILTER (
                   WHERE d.met_on <> 'ended' AND parent.status IN ('dead', 'cancelled')))::uuid AS failed_parent
        FROM task_dependencies d
        -- One by one, by their keys: asked for the failed ones among them, the planner may walk through all that ever
        -- failed. The parent is a task or a barrier.
        CROSS JOIN LATERAL (
            SELECT CASE WHEN d.by_barrier THEN (SELECT b.status FROM barriers b WHERE b.barrier_id = d.parent_id)
                        ELSE (SELECT t.status FROM tasks t WHERE t.task_id = d.parent_id) END AS status
            OFFSET 0 -- looked up once for each edge, not wherever it is named: a join may have a thousand
        ) AS parent
        WHERE d.child_id = of_task
    ) AS counted
$$;
