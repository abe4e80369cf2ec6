-- Does the next chunk of a bulk job and moves its progress, in one transaction. The job's row is locked and must be
-- where the runner believes it to be: of several runners one does the chunk, and the others read on. `wanted` are the
-- next tasks after `expected`; an empty chunk is the end. The first chunk of a job with canaries is the canaries. Tasks
-- that a feature owns are not revived: the caller has handed them to their owner, which put so many back.

CREATE FUNCTION advance_bulk(bulk uuid, expected uuid, wanted uuid[], put_back int DEFAULT 0)
RETURNS TABLE (:columns_of_bulk_jobs, revived jsonb, ended jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    found   bulk_jobs;
    altered uuid[];
    back    uuid[];
    over    uuid[];
    alike   jsonb := '{}';
BEGIN
    PERFORM lock_keys_of(wanted) FROM bulk_jobs b WHERE b.bulk_id = bulk AND b.action = 'retry';
    SELECT * INTO found FROM bulk_jobs b WHERE b.bulk_id = bulk FOR UPDATE;
    IF found.state <> 'running' OR found.last_task_id IS DISTINCT FROM expected THEN
        RETURN;
    END IF;
    IF cardinality(wanted) = 0 THEN
        RETURN QUERY
        UPDATE bulk_jobs b SET state = 'finished', updated_at = clock_timestamp() WHERE b.bulk_id = bulk
        RETURNING :each_of_bulk_jobs(b), counts_of('{}'), counts_of('{}');
        RETURN;
    END IF;

    IF found.action = 'cancel' THEN
        SELECT c.changed, c.ended INTO altered, over FROM cancel_tasks(wanted) AS c;
    ELSE
        SELECT r.changed, r.everybody, r.ended, r.duplicates INTO altered, back, over, alike
        FROM revive_tasks(wanted) AS r;
    END IF;
    RETURN QUERY
    UPDATE bulk_jobs b SET
        done = b.done + cardinality(wanted), changed = b.changed + cardinality(altered),
        duplicates = b.duplicates + (SELECT count(*) FROM unnest(wanted) AS each WHERE alike ? each::text),
        requeued = b.requeued + put_back,
        last_task_id = wanted[cardinality(wanted)], updated_at = clock_timestamp(),
        state = CASE WHEN b.canary IS NOT NULL AND b.last_task_id IS NULL THEN 'waiting-for-canary' ELSE b.state END,
        canary_ids = CASE WHEN b.canary IS NOT NULL AND b.last_task_id IS NULL THEN altered ELSE b.canary_ids END
    WHERE b.bulk_id = bulk RETURNING :each_of_bulk_jobs(b), counts_of(back), counts_of(over);
END $$;
