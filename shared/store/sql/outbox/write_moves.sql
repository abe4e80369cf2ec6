-- What follows from moves of tasks, in the transaction that moved them: failures of their groups are recorded, each
-- subscribed feature gets an outbox row, and concurrency keys are released. Call it only if a task has a subscription;
-- a task of a group always has one. Releasing keys locks tasks that are free, so it comes last.

CREATE FUNCTION write_moves(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    concerns int;
BEGIN
    IF jsonb_array_length(moves) = 1 THEN
        concerns := moves -> 0 ->> 'concerns';
    ELSE
        SELECT bit_or(m.concerns) INTO concerns FROM jsonb_to_recordset(moves) AS m(concerns int);
    END IF;
    IF moves @> '[{"status": "dead"}]' THEN
        PERFORM record_failures(moves);
    END IF;
    IF concerns & :outbox_bits <> 0 THEN
        PERFORM write_outbox(moves);
    END IF;
    IF concerns & :concern_of_key <> 0 THEN
        PERFORM release_keys_after(moves);
    END IF;
END $$;

-- One move. `seq` is the number of its event.

CREATE FUNCTION move_of(task_id uuid, seq int, life int, concerns int, move text, status text, at timestamptz)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'task_id', task_id, 'seq', seq, 'life', life, 'concerns', concerns, 'move', move, 'status', status, 'at', at)
$$;
