-- NOTIFY only wakes: what happened is read from rows. It takes a database-wide lock at commit, so each call of the
-- engine sends one for the streams and at most one for the dispatcher, however many tasks it moved. PL/pgSQL keeps its
-- plans: as SQL functions these two would be parsed and planned at every call.

CREATE FUNCTION wake_streams(task_ids uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF cardinality(task_ids) > 0 THEN
        PERFORM pg_notify(
            'windlass_events',
            CASE WHEN cardinality(task_ids) <= 150 THEN array_to_string(task_ids, ',') ELSE '*' END
        );
    END IF;
END $$;

-- It looks at the providers named; at all of them when none are, or too many.

CREATE FUNCTION wake_dispatcher(names text[] DEFAULT NULL) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    said text := names[1];
BEGIN
    IF cardinality(names) > 1 THEN
        SELECT string_agg(DISTINCT name, E'\n') INTO said FROM unnest(names) AS name;
    END IF;
    PERFORM pg_notify('windlass_dispatch', CASE WHEN octet_length(said) < 4000 THEN said ELSE '' END);
END $$;

-- Something is to be remembered, or a model to be filled: whichever janitor is idle waits for this.

CREATE FUNCTION wake_memory() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('windlass_memory', '');
END $$;

CREATE FUNCTION providers_of(task_ids uuid[]) RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT array_agg(DISTINCT t.provider) FROM unnest(task_ids) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t);
END $$;
