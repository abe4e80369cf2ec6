-- Writes one outbox row that is about no task: something happened to a feature's subject.

CREATE FUNCTION write_event(feature text, subject uuid, move text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (feature, subject, move) VALUES (feature, subject, move);
    PERFORM pg_notify('windlass_outbox', '');
END $$;
