-- Writes one outbox row for each feature that is subscribed to a move, in the transaction of the move. `:subscribers`
-- lists the features with their bits, and `:subject_of` is the task, or the id that its row
-- names for the feature. One NOTIFY wakes the orchestrators, however many rows a call writes.

CREATE FUNCTION write_outbox(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO outbox (feature, subject, task_id, life, seq, move, status, at)
    SELECT f.feature, s.subject, m.task_id, m.life, m.seq, m.move, m.status, m.at
    FROM jsonb_to_recordset(moves) AS m(
        task_id uuid, seq int, life int, concerns int, move text, status text, at timestamptz)
    JOIN (:subscribers) AS f(feature, bit) ON m.concerns & f.bit <> 0
    CROSS JOIN LATERAL (SELECT :subject_of(f.feature, m) AS subject OFFSET 0) AS s
    -- A task without a subject has no subscriber, whatever its bits are.
    WHERE s.subject IS NOT NULL
    ORDER BY m.task_id, m.seq;
    IF FOUND THEN
        PERFORM pg_notify('windlass_outbox', '');
    END IF;
END $$;
