-- What an agent did, written down at the end of each life of its task: what was asked, what came out, how it ended, in
-- at most 4,000 characters. Everything in it was scrubbed when it was stored. A move that is told late, when its task
-- lives again, finds its error in its event. Nobody else's row is locked, so that an end waits for nobody; its words
-- are sorted in and its vector is made when the janitor gathers it.

CREATE FUNCTION tell_memory(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    move    jsonb;
    became  text;
    t       record;
    asked   text;
    failure jsonb;
    others  boolean := false;
    written boolean := false;
BEGIN
    -- One by one: mostly there is one, and a statement for many costs it more to begin than a row costs to write.
    FOR place IN 0 .. jsonb_array_length(moves) - 1 LOOP
        move := moves -> place;
        became := move ->> 'status';
        SELECT tasks.task_id, tasks.attempt, tasks.user_id, tasks.actor, tasks.provider, tasks.project_id,
               tasks.workflow_id, tasks.payload, tasks.result, tasks.error, tasks.usage, tasks.last_seq INTO t
        FROM tasks WHERE tasks.task_id = (move ->> 'task_id')::uuid;
        IF t.actor <> 'embed' AND became IN ('completed', 'dead', 'cancelled') THEN
            asked := left(btrim(coalesce(
                t.payload ->> 'prompt', t.payload ->> 'content', t.payload ->> 'text', t.payload::text)), 2000);
            failure := NULL;
            IF became = 'dead' THEN
                failure := CASE WHEN t.last_seq = (move ->> 'seq')::int THEN t.error ELSE (
                    SELECT e.data -> 'error' FROM task_events e
                    WHERE e.task_id = t.task_id AND e.seq = (move ->> 'seq')::int) END;
            END IF;
            INSERT INTO agent_events (
                event_id, task_id, life, attempt, user_id, actor, provider, subagent_type, project_id, workflow_id,
                status, title, text, data, at)
            VALUES (
                new_id(), t.task_id, (move ->> 'life')::int, t.attempt, t.user_id, t.actor, t.provider,
                CASE WHEN t.actor = 'agent' THEN t.payload ->> 'subagent_type' END, t.project_id, t.workflow_id,
                became, left(split_part(asked, E'\n', 1), 120),
                asked || E'\n\n' || left(CASE became
                    WHEN 'completed' THEN outcome_of(t.result)
                    WHEN 'dead' THEN concat(failure ->> 'type', ': ', failure ->> 'message')
                    ELSE became END, 2000),
                jsonb_strip_nulls(jsonb_build_object('usage', t.usage, 'error_type', failure -> 'type')),
                (move ->> 'at')::timestamptz)
            ON CONFLICT (task_id, life) DO NOTHING;
            written := true;
        ELSE
            others := true;
        END IF;
    END LOOP;
    IF written THEN
        PERFORM wake_memory();
    END IF;
    IF others THEN
        PERFORM tell_embedding_jobs(moves);
    END IF;
END $$;

-- The words of a result: those that the actors that come with Windlass give, else all of it.

CREATE FUNCTION outcome_of(result jsonb) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(
        CASE jsonb_typeof(result) WHEN 'string' THEN result #>> '{}'
                                  WHEN 'object' THEN coalesce(
            result ->> 'summary', result ->> 'answer', result ->> 'output', result ->> 'text', result ->> 'result')
        END, result::text, '')
$$;

-- A job has failed when its task has: also when nobody is there any more who could say so. A revived one waits again.

CREATE FUNCTION tell_embedding_jobs(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    UPDATE embedding_jobs j SET
        state = CASE m.status WHEN 'completed' THEN 'done' WHEN 'dead' THEN 'failed' WHEN 'cancelled' THEN 'failed'
                              ELSE 'waiting' END,
        error = CASE WHEN m.status = 'dead' THEN jsonb_build_object(
                         'type', t.error -> 'type', 'message', left(t.error ->> 'message', 500))
                     WHEN m.status = 'cancelled' THEN jsonb_build_object('type', 'cancelled', 'message', 'cancelled')
                END,
        updated_at = m.at
    FROM (
        SELECT DISTINCT ON (told.task_id) told.* FROM jsonb_to_recordset(moves) AS told(
            task_id uuid, seq int, status text, at timestamptz)
        ORDER BY told.task_id, told.seq DESC
    ) AS m
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
    WHERE j.task_id = m.task_id AND t.actor = 'embed' AND j.updated_at <= m.at;
END $$;
