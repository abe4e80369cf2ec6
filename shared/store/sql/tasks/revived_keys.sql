-- The dedupe keys of tasks that are to live again, so that no two live under one key, and a repeat of the submit finds
-- the one that does. Keys are locked before anything else is: a submit that takes one has it locked as well.

CREATE FUNCTION lock_keys_of(wanted uuid[]) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM submission_keys k
    WHERE k.kind = 'dedupe' AND (k.user_id, k.key) IN (
        SELECT t.user_id, t.dedupe_key FROM tasks t WHERE t.task_id = ANY (wanted) AND t.dedupe_key IS NOT NULL)
    ORDER BY k.user_id, k.key FOR NO KEY UPDATE;
END $$;

-- Makes the keys of those that can be revived point to them again. Returns the others by their ids, each with the task
-- that has its key: one that lives, or one of these that was quicker. A key whose time is over means nothing any more,
-- and is left so. One that was not locked before, a dependent's, is not waited for: whoever has it locked is about to
-- use it.

CREATE FUNCTION take_keys_back(candidates uuid[]) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz := clock_timestamp();
    own     record;
    holder  uuid;
    locked  uuid;
    taken   uuid[] := '{}';
    refused jsonb := '{}';
BEGIN
    FOR own IN
        SELECT t.task_id, t.user_id, t.dedupe_key FROM unnest(candidates) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        WHERE t.dedupe_key IS NOT NULL AND t.status IN :sources_of_revive
        ORDER BY t.user_id, t.dedupe_key, t.task_id
    LOOP
        SELECT k.task_id INTO holder FROM submission_keys k
        WHERE k.user_id = own.user_id AND k.kind = 'dedupe' AND k.key = own.dedupe_key AND k.expires_at > moment;
        CONTINUE WHEN NOT FOUND;
        SELECT k.task_id INTO locked FROM submission_keys k
        WHERE k.user_id = own.user_id AND k.kind = 'dedupe' AND k.key = own.dedupe_key
        FOR NO KEY UPDATE SKIP LOCKED;
        holder := coalesce(locked, holder);
        IF locked IS NULL OR holder = ANY (taken) OR (holder <> own.task_id AND EXISTS (
            SELECT 1 FROM tasks t WHERE t.task_id = holder AND t.completed_at IS NULL)) THEN
            refused := refused || jsonb_build_object(own.task_id, holder);
        ELSE
            UPDATE submission_keys k SET task_id = own.task_id
            WHERE k.user_id = own.user_id AND k.kind = 'dedupe' AND k.key = own.dedupe_key;
            taken := taken || own.task_id;
        END IF;
    END LOOP;
    RETURN refused;
END $$;
