-- Publishes one event of a workflow, its end or its escalation, for webhooks. One turn can have several.

CREATE FUNCTION publish_workflow(wanted uuid, number bigint, event jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM publish_event(
        w.workflow_id, 'workflow.' || (event ->> 'status'), w.updated_at, jsonb_build_object(
            'subject', w.workflow_id, 'seq', number, 'owner', w.user_id,
            'about', jsonb_build_object('workflow_id', w.workflow_id, 'tags', w.tags), 'data', jsonb_build_object(
                'workflow_id', w.workflow_id, 'name', w.name, 'user_id', w.user_id, 'status', event -> 'status',
                'failures', event -> 'failures', 'tags', w.tags, 'created_at', utc(w.created_at), 'seq', number,
                'completed_at', CASE WHEN event ->> 'status' <> 'escalated' THEN utc(w.completed_at) END,
                'counts', event -> 'counts')))
    FROM workflows w WHERE w.workflow_id = wanted;
END $$;
