-- Creates a project, or finds the one that was created with the same key. A refusal is returned, not raised: raised, it
-- would appear in the server's log as an error.

CREATE FUNCTION create_project(wanted jsonb)
RETURNS TABLE (refusal text, project_id uuid, deduplicated boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    fresh   uuid := (wanted ->> 'task_id')::uuid;
    earlier uuid;
BEGIN
    BEGIN
        earlier := owners_of_keys(jsonb_build_array(wanted), 'idempotency') ->> fresh::text;
    EXCEPTION WHEN SQLSTATE 'WL409' OR SQLSTATE 'WL422' THEN
        RETURN QUERY SELECT SQLERRM, NULL::uuid, false;
        RETURN;
    END;
    IF earlier IS NULL THEN
        INSERT INTO projects (project_id, user_id, name, defaults, on_failure)
        VALUES (fresh, wanted ->> 'user_id', wanted ->> 'name', wanted -> 'defaults', wanted ->> 'on_failure');
    END IF;
    RETURN QUERY SELECT NULL::text, coalesce(earlier, fresh), earlier IS NOT NULL;
END $$;
