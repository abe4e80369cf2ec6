-- Notes that these tasks have come into the terminal states that they are in now. Appended, never updated: a counter
-- would be a queue for everybody. The janitor folds the tallies into `task_counts`.

CREATE FUNCTION tally_tasks(ended uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO task_tallies (user_id, provider, status, tasks)
    SELECT t.user_id, t.provider, t.status, count(*) FROM tasks t
    WHERE t.task_id = ANY (ended) GROUP BY t.user_id, t.provider, t.status;
END $$;
