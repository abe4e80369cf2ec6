-- Writes an event that is about no task: one outbox row for each feature that receives everything. `data` has what its
-- subscriber needs.

CREATE FUNCTION publish_event(subject uuid, type text, at timestamptz, data jsonb) RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_variable
BEGIN
    INSERT INTO outbox (feature, subject, move, at, data)
    SELECT f.feature, subject, type, at, data
    FROM global_subscriptions g JOIN (:subscribers) AS f(feature, bit) ON g.bits & f.bit <> 0;
    IF FOUND THEN
        PERFORM pg_notify('windlass_outbox', '');
    END IF;
END $$;

-- Times as everywhere in JSON.

CREATE FUNCTION utc(moment timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
    SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
$$;
