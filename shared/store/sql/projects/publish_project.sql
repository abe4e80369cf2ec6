-- Publishes that a project was started or stopped.

CREATE FUNCTION publish_project(noted uuid, change text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM publish_event(
        p.project_id, CASE change WHEN 'start' THEN 'project.started' ELSE 'project.stopped' END, p.updated_at,
        jsonb_build_object(
            'subject', p.project_id, 'seq', p.last_seq, 'owner', p.user_id,
            'about', jsonb_build_object('project_id', p.project_id), 'data', jsonb_build_object(
                'project_id', p.project_id, 'name', p.name, 'user_id', p.user_id, 'state', p.state, 'mode', p.mode,
                'current_run_id', p.current_run_id, 'started_at', utc(p.started_at), 'stopped_at', utc(p.stopped_at),
                'stop_reason', p.stop_reason, 'last_error', p.last_error)))
    FROM projects p WHERE p.project_id = noted;
END $$;
