-- Locks the workflows that new tasks join, and returns those that are being cancelled: they take no more.

CREATE FUNCTION closed_workflows(submissions jsonb) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    wanted uuid[];
BEGIN
    wanted := ARRAY(
        SELECT DISTINCT s.workflow_id::uuid FROM jsonb_to_recordset(submissions) AS s(workflow_id text, concerns int)
        WHERE s.concerns & :concern_of_workflow <> 0 AND s.workflow_id IS NOT NULL);
    IF cardinality(wanted) = 0 THEN RETURN NULL; END IF;
    PERFORM 1 FROM workflows w WHERE w.workflow_id = ANY (wanted) ORDER BY w.workflow_id FOR NO KEY UPDATE;
    RETURN (
        SELECT string_agg(w.workflow_id::text, ',') FROM workflows w
        WHERE w.workflow_id = ANY (wanted) AND w.cancel_requested);
END $$;

-- Whether somebody has given it up: nothing of it starts, or comes back.

CREATE FUNCTION is_given_up(id text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM workflows w WHERE w.workflow_id = id::uuid AND w.cancel_requested);
END $$;
