-- Locks a project, then reads what a decision about it needs: its queue, its current run with the state of that run's
-- task, the run's item, the first item that waits (`first`), and the first that waits and is not the run's (`next`).
-- One call, because each of these statements must come after the lock. Returns nothing if there is no such project.

CREATE FUNCTION lock_project(wanted uuid) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM projects p WHERE p.project_id = wanted FOR NO KEY UPDATE;
    RETURN (
        SELECT jsonb_build_object(
            'now', clock_timestamp(),
            'queue', to_jsonb(p) - ARRAY['name', 'defaults', 'last_seq', 'created_at', 'updated_at'],
            'run', to_jsonb(r),
            'task', CASE WHEN t.task_id IS NOT NULL THEN jsonb_build_object(
                'status', t.status, 'life', t.life, 'ended_at', t.completed_at,
                'error', CASE t.status WHEN 'dead' THEN t.error END) END,
            'choice', choice_of(wanted, r.run_id, r.item_id))
        FROM projects p LEFT JOIN project_runs r ON r.run_id = p.current_run_id
        LEFT JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = r.task_id OFFSET 0) AS t ON true
        WHERE p.project_id = wanted);
END $$;

CREATE FUNCTION choice_of(of_project uuid, run_id uuid, item_id uuid) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN jsonb_build_object(
        'bound', (
            SELECT item_facts(i.item_id, i.position, i.title, i.state, i.last_run_id, i.task) FROM project_items i
            WHERE i.item_id = choice_of.item_id),
        'first', (
            SELECT item_facts(i.item_id, i.position, i.title, i.state, i.last_run_id, i.task) FROM project_items i
            WHERE i.project_id = of_project AND i.state = 'waiting' ORDER BY i.position LIMIT 1),
        'next', (
            SELECT item_facts(i.item_id, i.position, i.title, i.state, i.last_run_id, i.task) FROM project_items i
            -- Without a run there is nothing to pass over, and all that waits would be read.
            WHERE choice_of.run_id IS NOT NULL AND i.project_id = of_project AND i.state = 'waiting'
              AND i.last_run_id IS DISTINCT FROM choice_of.run_id
            ORDER BY i.position LIMIT 1),
        'head', (SELECT trim_scale(min(i.position))::text FROM project_items i WHERE i.project_id = of_project));
END $$;

CREATE FUNCTION item_facts(item_id uuid, place numeric, title text, state text, last_run_id uuid, task jsonb)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'item_id', item_id, 'position', trim_scale(place)::text, 'title', title, 'state', state,
        'last_run_id', last_run_id, 'actor', task ->> 'actor', 'provider', task ->> 'provider')
$$;
