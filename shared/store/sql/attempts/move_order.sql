-- Orders at providers. Each step is one call, refused to an attempt that no longer owns its task: `fence` is the task's
-- id, attempt and claim token. Repeating a step answers as the first time did.

CREATE FUNCTION owns_task(fence jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM 1 FROM tasks t
    WHERE t.task_id = (fence ->> 'task_id')::uuid AND t.status = 'running' AND t.attempt = (fence ->> 'attempt')::int
      AND t.claim_token = (fence ->> 'claim_token')::uuid
    FOR NO KEY UPDATE;
    RETURN FOUND;
END $$;

-- Before the order is sent: from here on the task holds its slot until the order is known to have ended.
CREATE FUNCTION intend_order(fence jsonb, new jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
BEGIN
    IF NOT owns_task(fence) THEN RETURN false; END IF;
    moment := clock_timestamp();
    INSERT INTO generations (
        generation_id, task_id, attempt, user_id, provider, operation, status, request, callback_hash, workflow_run_id,
        interaction_id, prompt_id, source_data, created_at, updated_at)
    SELECT (new ->> 'generation_id')::uuid, t.task_id, t.attempt, t.user_id, t.provider, new ->> 'operation',
           'intended',
           new -> 'request', decode(new ->> 'callback_hash', 'hex'), t.workflow_run_id, t.interaction_id,
           new ->> 'prompt_id', new -> 'source_data', moment, moment
    FROM tasks t WHERE t.task_id = (fence ->> 'task_id')::uuid
    ON CONFLICT (generation_id) DO NOTHING;
    UPDATE tasks t SET job_open = true, provider_job_id = NULL WHERE t.task_id = (fence ->> 'task_id')::uuid;
    RETURN true;
END $$;

-- One of the moves in `shared/order_states.py`. Without a fence it is the move of somebody who looks after jobs that
-- nobody waits for any more, and only where the task has ended. What the order costs is added to the task's usage with
-- the move: once, whoever dies in between.
CREATE FUNCTION move_order(fence jsonb, wanted uuid, move jsonb, job_id text, answer jsonb, files jsonb)
RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
    target text := move ->> 'target';
    found_task uuid;
BEGIN
    IF fence IS NOT NULL THEN
        IF NOT owns_task(fence) THEN RETURN false; END IF;
    ELSE
        PERFORM 1 FROM tasks t JOIN generations g USING (task_id)
        WHERE g.generation_id = wanted AND t.completed_at IS NOT NULL FOR NO KEY UPDATE OF t;
        IF NOT FOUND THEN RETURN false; END IF;
    END IF;
    moment := clock_timestamp();
    UPDATE generations g SET
        status = target, provider_job_id = coalesce(job_id, g.provider_job_id),
        response = coalesce(answer, g.response), updated_at = moment,
        ended_at = CASE WHEN (move ->> 'ends')::boolean THEN moment END, given_up = false
    WHERE g.generation_id = wanted AND g.status IN (SELECT jsonb_array_elements_text(move -> 'sources'))
      AND (fence IS NULL OR g.task_id = (fence ->> 'task_id')::uuid)
    RETURNING g.task_id INTO found_task;
    IF NOT FOUND THEN
        RETURN EXISTS (SELECT 1 FROM generations g WHERE g.generation_id = wanted AND g.status = target);
    END IF;
    INSERT INTO contents (
        content_id, generation_id, index, provider_url, media_type, extension, place, size_bytes, sha256, created_at)
    SELECT f.content_id, wanted, f.index, f.provider_url, f.media_type, f.extension, f.place, f.size_bytes, f.sha256,
           moment
    FROM jsonb_to_recordset(files) AS f(
        content_id uuid, index int, provider_url text, media_type text, extension text, place text, size_bytes bigint,
        sha256 text);
    UPDATE tasks t SET
        job_open = (move ->> 'keeps_slot')::boolean, provider_job_id = coalesce(job_id, t.provider_job_id),
        usage = CASE WHEN move ? 'cost_usd' THEN added_usage(t.usage, move) ELSE t.usage END,
        updated_at = moment
    WHERE t.task_id = found_task;
    PERFORM wake_dispatcher(providers_of(ARRAY[found_task])) WHERE NOT (move ->> 'keeps_slot')::boolean;
    IF fence IS NULL AND NOT (move ->> 'keeps_slot')::boolean THEN
        PERFORM release_keys_of(ARRAY[found_task]);
    END IF;
    RETURN true;
END $$;

-- Steps of many orders, each as by itself: `fence` and `new` of each, or `fence`, `generation_id`, `move`, `job_id`,
-- `response` and `files`. In the order in which everybody locks tasks; answered in the order in which they came.
CREATE FUNCTION intend_orders(steps jsonb) RETURNS boolean[] LANGUAGE plpgsql AS $$
DECLARE
    answers boolean[] := array_fill(false, ARRAY[jsonb_array_length(steps)]);
    step    record;
BEGIN
    FOR step IN
        SELECT e.ordinality AS place, e.value AS said FROM jsonb_array_elements(steps) WITH ORDINALITY AS e
        ORDER BY (e.value #>> '{fence,task_id}')::uuid, e.ordinality
    LOOP
        answers[step.place] := intend_order(step.said -> 'fence', step.said -> 'new');
    END LOOP;
    RETURN answers;
END $$;

CREATE FUNCTION move_orders(steps jsonb) RETURNS boolean[] LANGUAGE plpgsql AS $$
DECLARE
    answers boolean[] := array_fill(false, ARRAY[jsonb_array_length(steps)]);
    step    record;
BEGIN
    FOR step IN
        SELECT e.ordinality AS place, e.value AS said FROM jsonb_array_elements(steps) WITH ORDINALITY AS e
        ORDER BY (e.value #>> '{fence,task_id}')::uuid, e.ordinality
    LOOP
        answers[step.place] := move_order(
            nullif(step.said -> 'fence', 'null'), (step.said ->> 'generation_id')::uuid, step.said -> 'move',
            step.said ->> 'job_id', nullif(step.said -> 'response', 'null'), step.said -> 'files');
    END LOOP;
    RETURN answers;
END $$;

-- Nobody will ever know what became of a job: the slot is given back, and nobody looks again.
CREATE FUNCTION give_up_order(wanted uuid) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    owner uuid := (SELECT g.task_id FROM generations g WHERE g.generation_id = wanted);
BEGIN
    PERFORM 1 FROM tasks t WHERE t.task_id = owner FOR NO KEY UPDATE;
    UPDATE generations g SET given_up = true WHERE g.generation_id = wanted;
    UPDATE tasks t SET job_open = false WHERE t.task_id = owner;
    PERFORM wake_dispatcher(providers_of(ARRAY[owner])), release_keys_of(ARRAY[owner]);
END $$;

-- What a provider called back with. It only wakes whoever waits for the job, who asks the provider itself; but where
-- the answer to the order was lost, the job's id is a clue worth keeping: the latest, until the job is known. Who has
-- given up waiting for it lives again. Returns the task, or null when nobody is meant, and what was revived and ended.
CREATE FUNCTION hear_callback(hash bytea, provider_name text, job_id text, body jsonb)
RETURNS TABLE (task_id uuid, revived jsonb, ended jsonb) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    moment timestamptz := clock_timestamp();
    called uuid;
    found_task uuid;
    back jsonb;
    over jsonb;
BEGIN
    -- Not locked yet: before an order come its task and the task's key.
    SELECT g.generation_id INTO called FROM generations g
    WHERE CASE WHEN hash IS NOT NULL THEN g.callback_hash = hash
               ELSE g.provider = provider_name AND g.provider_job_id = job_id END;
    IF job_id IS NOT NULL THEN
        SELECT r.revived, r.ended INTO back, over FROM revive_lost_order(called) AS r;
    END IF;
    UPDATE generations g SET
        callback = body, callback_at = moment,
        provider_job_id = CASE WHEN g.status IN ('intended', 'unknown') THEN coalesce(job_id, g.provider_job_id)
                               ELSE g.provider_job_id END
    WHERE g.generation_id = called
    RETURNING g.task_id INTO found_task;
    IF found_task IS NOT NULL THEN
        PERFORM pg_notify('windlass_callback', found_task::text);
    END IF;
    RETURN QUERY SELECT found_task, coalesce(back, '[]'), coalesce(over, '[]');
END $$;

-- A task that died because nobody could tell what had become of its order, about which the provider has called back
-- now: it lives again, and its order is as it was before it was given up, so that the next attempt asks for the job and
-- never orders once more by itself. In a project or a workflow a person decides: what was called back stays on the
-- order, and who revives the task takes it. So does who has taken the task's key meanwhile.
CREATE FUNCTION revive_lost_order(lost uuid) RETURNS TABLE (revived jsonb, ended jsonb) LANGUAGE plpgsql AS $$
DECLARE
    owner   uuid;
    changed uuid[];
    back    uuid[];
    over    uuid[];
BEGIN
    SELECT g.task_id INTO owner FROM generations g WHERE g.generation_id = lost AND g.status = 'unknown';
    IF NOT FOUND OR NOT is_lost(owner, lost) THEN RETURN; END IF;
    PERFORM lock_keys_of(ARRAY[owner]);
    PERFORM 1 FROM tasks t WHERE t.task_id = owner FOR NO KEY UPDATE;
    IF NOT is_lost(owner, lost) THEN RETURN; END IF;
    SELECT r.changed, r.everybody, r.ended INTO changed, back, over FROM revive_tasks(ARRAY[owner]) AS r;
    IF changed = '{}' THEN RETURN; END IF;
    UPDATE generations g SET status = 'intended', given_up = false, updated_at = clock_timestamp()
    WHERE g.generation_id = lost;
    RETURN QUERY SELECT counts_of(back), counts_of(over);
END $$;

-- Whether a task has died of this order, and may be brought back by whoever tells of it. One that was ordered once more
-- since has another order to ask for.
CREATE FUNCTION is_lost(owner uuid, order_id uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (
        SELECT 1 FROM tasks t
        WHERE t.task_id = owner AND t.status = 'dead' AND t.error ->> 'type' = 'SubmitUnknown'
          AND t.group_id IS NULL AND t.concerns & :owners = 0)
    AND EXISTS (
        SELECT 1 FROM generations g WHERE g.generation_id = order_id AND g.status = 'unknown' AND NOT EXISTS (
            SELECT 1 FROM generations later WHERE later.task_id = owner AND later.generation_id > order_id));
END $$;
