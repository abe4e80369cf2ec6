-- A group of tasks can be closed: none of its tasks starts or is revived, and none joins. A group can also limit
-- failures: once that many of its tasks have failed, none of them starts, until the failures are forgiven. The claim
-- looks at the group after it has locked the task (`:is_stopped`).

-- Locks the groups that new tasks join, and returns those that are closed.

CREATE FUNCTION closed_groups(submissions jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    wanted uuid[];
BEGIN
    wanted := ARRAY(
        SELECT DISTINCT s.group_id FROM jsonb_to_recordset(submissions) AS s(group_id uuid)
        WHERE s.group_id IS NOT NULL);
    PERFORM share_groups(wanted);
    RETURN (
        SELECT string_agg(g.group_id::text, ',') FROM task_groups g WHERE g.group_id = ANY (wanted) AND g.is_closed);
END $$;

CREATE FUNCTION share_groups(wanted uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM task_groups g WHERE g.group_id = ANY (wanted) ORDER BY g.group_id FOR SHARE;
END $$;

-- The groups of some tasks. Postgres looks each task up by its id.

CREATE FUNCTION groups_of(wanted uuid[]) RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT DISTINCT t.group_id FROM unnest(wanted) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        WHERE t.group_id IS NOT NULL);
END $$;

CREATE FUNCTION is_in_closed_group(of_group uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM task_groups g WHERE g.group_id = of_group AND g.is_closed);
END $$;

-- Each task that died counts once for each of its lives. A task that was buried because of a parent has not failed.

CREATE FUNCTION record_failures(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO group_failures (group_id, task_id, life)
    SELECT t.group_id, t.task_id, m.life FROM jsonb_to_recordset(moves) AS m(task_id uuid, life int, status text)
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
    WHERE m.status = 'dead' AND t.group_id IS NOT NULL AND t.error ->> 'type' IS DISTINCT FROM 'DependencyFailed'
    ON CONFLICT DO NOTHING;
END $$;
