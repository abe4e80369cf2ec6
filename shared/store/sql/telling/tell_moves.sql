-- Tells those who are concerned what has become of their tasks, in the transaction that moved them (decision 0038).
-- Called only where somebody is. A move of a task never fails because of what it tells: a teller that fails is undone,
-- and its moves are written down as untold, for the janitor. Only what is over when the call is repeated passes
-- through: a lock that somebody else has, a server that stops or has no room.

CREATE FUNCTION tell_moves(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    concerns int;
    of_some  int;
    of_all   int;
    concern  record;
    theirs   jsonb;
BEGIN
    IF jsonb_array_length(moves) = 1 THEN
        -- As most are: nothing has to be sorted out, which would cost more than many a teller.
        concerns := moves -> 0 ->> 'concerns';
        IF concerns & :outbox_bits <> 0 THEN
            PERFORM write_outbox(moves);
            concerns := concerns - (concerns & :outbox_bits);
            IF concerns = 0 THEN RETURN; END IF;
        END IF;
        :telling_of_one
        RETURN;
    END IF;
    SELECT bit_or(m.concerns), bit_and(m.concerns) INTO of_some, of_all
    FROM jsonb_to_recordset(moves) AS m(concerns int);
    IF of_some & :outbox_bits <> 0 THEN
        PERFORM write_outbox(moves);
    END IF;
    FOR concern IN
        SELECT told.subject, told.bit FROM (:told) AS told(subject, bit) WHERE told.bit & of_some <> 0 ORDER BY told.bit
    LOOP
        -- Nearly always all moves of a call are of the same, and need not be put together anew.
        theirs := moves;
        IF of_all & concern.bit = 0 THEN
            theirs := (
                SELECT jsonb_agg(m.move ORDER BY m.place)
                FROM jsonb_array_elements(moves) WITH ORDINALITY AS m(move, place)
                WHERE (m.move ->> 'concerns')::int & concern.bit <> 0);
        END IF;
        PERFORM tell_or_note(concern.subject, theirs);
    END LOOP;
END $$;

CREATE FUNCTION tell_or_note(subject text, moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM tell(subject, moves);
EXCEPTION
    WHEN transaction_rollback OR lock_not_available OR operator_intervention OR insufficient_resources THEN
        RAISE;
    WHEN OTHERS THEN
        INSERT INTO untold (subject, task_id, seq, move, error)
        SELECT tell_or_note.subject, (m.move ->> 'task_id')::uuid, (m.move ->> 'seq')::int, m.move,
               SQLERRM || ' (' || SQLSTATE || ')'
        FROM jsonb_array_elements(moves) AS m(move);
END $$;

-- One move, with what a teller needs to find the rest in the row. `seq` is the number of its event.

CREATE FUNCTION move_of(task_id uuid, seq int, life int, concerns int, move text, status text, at timestamptz)
RETURNS jsonb LANGUAGE sql STABLE AS $$
    SELECT jsonb_build_object(
        'task_id', task_id, 'seq', seq, 'life', life, 'concerns', concerns, 'move', move, 'status', status, 'at', at)
$$;

-- Filled in from `shared/store/tellers.py`: each concern has one teller, which hears moves in any order, some of them
-- late, and none twice.

CREATE FUNCTION tell(subject text, moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF moves IS NULL THEN
        RETURN;
    :tellers
    ELSE
        RAISE EXCEPTION 'nobody here tells a %', subject;
    END IF;
END $$;

-- Tells the untold again, those first that have waited longest, each for itself: what has nothing wrong with it is told
-- although it was in one call with something that has. What fails again waits longer each time, up to an hour; what
-- somebody has locked is simply left to the next time. Returns how many were told, and how many failed.

CREATE FUNCTION tell_again(at_most int, OUT told int, OUT failed int) LANGUAGE plpgsql AS $$
DECLARE
    entry record;
BEGIN
    told := 0;
    failed := 0;
    FOR entry IN
        SELECT u.untold_id, u.subject, u.move FROM untold u WHERE u.tell_at <= clock_timestamp()
        ORDER BY u.untold_id LIMIT at_most FOR UPDATE SKIP LOCKED
    LOOP
        BEGIN
            -- As whoever moves a task has it before, which a teller relies on.
            PERFORM lock_subjects(ARRAY[(entry.move ->> 'task_id')::uuid]);
            PERFORM tell(entry.subject, jsonb_build_array(entry.move));
            DELETE FROM untold u WHERE u.untold_id = entry.untold_id;
            told := told + 1;
        EXCEPTION
            WHEN deadlock_detected OR lock_not_available THEN
                NULL;
            WHEN transaction_rollback OR operator_intervention OR insufficient_resources THEN
                RAISE;
            WHEN OTHERS THEN
                UPDATE untold u SET
                    tries = u.tries + 1, error = SQLERRM || ' (' || SQLSTATE || ')',
                    tell_at = clock_timestamp() + least(interval '30 s' * 2 ^ least(u.tries, 10), interval '1 h')
                WHERE u.untold_id = entry.untold_id;
                failed := failed + 1;
        END;
    END LOOP;
END $$;
