-- Of an older build, and kept for tests.
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

CREATE FUNCTION wake_dispatcher() RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_notify('windlass_dispatch', '');
END $$;
