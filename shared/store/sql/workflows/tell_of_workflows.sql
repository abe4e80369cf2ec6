-- Publishes the end or the escalation of workflows.

CREATE FUNCTION tell_of_workflows(changed uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM publish_event(
        w.workflow_id, 'workflow.' || w.status, w.updated_at, jsonb_build_object(
            'subject', w.workflow_id, 'seq', w.last_seq, 'owner', w.user_id,
            'about', jsonb_build_object('workflow_id', w.workflow_id, 'tags', w.tags), 'data', jsonb_build_object(
                'workflow_id', w.workflow_id, 'name', w.name, 'user_id', w.user_id, 'status', w.status,
                'failures', w.failures, 'tags', w.tags, 'created_at', utc(w.created_at), 'seq', w.last_seq,
                'completed_at', utc(w.completed_at), 'counts', jsonb_build_object(
                    'total', w.total, 'live', w.live, 'completed', w.completed, 'dead', w.dead,
                    'cancelled', w.cancelled))))
    FROM workflows w
    WHERE w.workflow_id = ANY (changed) AND w.status IN ('completed', 'failed', 'escalated', 'cancelled');
END $$;
