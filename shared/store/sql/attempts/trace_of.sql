-- The trace that a task was submitted in, for who has just claimed it. VOLATILE, so that it looks by a snapshot of its
-- own: the statement that calls the claim has taken one before, in which a task that has only just come is not there.

CREATE FUNCTION trace_of(wanted uuid) RETURNS text LANGUAGE plpgsql VOLATILE AS $$
BEGIN
    RETURN (SELECT t.traceparent FROM tasks t WHERE t.task_id = wanted);
END $$;
