-- Of those that are next in some queues, whom a claim cannot move, and why. A worker asks whose claim failed, without a
-- reason that it knows: each is claimed by itself, and nothing of that stays. Who has to be waited for is none of them.

CREATE FUNCTION unclaimable_tasks(of_queues text[], at_most int, aside uuid[], claimant text)
RETURNS TABLE (task_id uuid, reason text) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    one    uuid;
BEGIN
    FOR one IN
        SELECT w.task_id FROM waiting_in_line(of_queues, at_most, aside, false, moment) AS w
        UNION ALL
        (SELECT t.task_id FROM tasks t
         WHERE t.job_open AND t.provider IN (SELECT q.provider FROM queues q WHERE q.queue = ANY (of_queues))
           AND t.queue = ANY (of_queues) AND t.task_id <> ALL (aside) AND :due_at(moment) LIMIT at_most)
    LOOP
        BEGIN
            PERFORM claim_tasks(ARRAY[one], ARRAY[gen_random_uuid()], claimant, 60, false);
            RAISE EXCEPTION USING ERRCODE = 'WL001';
        EXCEPTION
            WHEN SQLSTATE 'WL001' OR lock_not_available OR deadlock_detected THEN NULL;
            WHEN OTHERS THEN
                task_id := one;
                reason := SQLERRM;
                RETURN NEXT;
        END;
    END LOOP;
END $$;
