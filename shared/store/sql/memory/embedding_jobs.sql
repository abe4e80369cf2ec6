-- Gathers events whose words nobody has sorted in yet: up to 64, or what there is once the oldest has waited so long.
-- Each model that is not retired gets a job with all of them. Returns how many were gathered; when there were too few,
-- in how many seconds it is worth looking again. `template` is a submission of an `embed` task, as far as it does not
-- differ.

CREATE FUNCTION gather_events(template jsonb, longest_seconds float, OUT gathered int, OUT again_seconds float)
LANGUAGE plpgsql AS $$
DECLARE
    chosen uuid[];
    age    float;
BEGIN
    -- Whoever changes the models waits for this, or the other way round: no event is left out by a new one. Taken by an
    -- earlier statement than the one that reads them.
    PERFORM pg_advisory_xact_lock_shared(hashtext('windlass models'));
    SELECT array_agg(f.event_id), extract(epoch FROM clock_timestamp() - min(f.at)) INTO chosen, age FROM (
        SELECT e.event_id, e.at FROM agent_events e WHERE e.gathered_at IS NULL
        ORDER BY e.event_id LIMIT 64 FOR NO KEY UPDATE SKIP LOCKED
    ) AS f;
    gathered := coalesce(cardinality(chosen), 0);
    IF gathered < 64 AND (gathered = 0 OR age < longest_seconds) THEN
        again_seconds := longest_seconds - coalesce(age, 0);
        gathered := 0;
        RETURN;
    END IF;
    UPDATE agent_events e SET
        gathered_at = clock_timestamp(),
        lexemes = setweight(to_tsvector('english', e.title), 'B') || to_tsvector('english', e.text)
    WHERE e.event_id = ANY (chosen);
    PERFORM file_job(m.model_id, m.provider, chosen, template) FROM embedding_models m WHERE m.state <> 'retired';
END $$;

-- Whether there is anything to gather, or a model that has to catch up or to take over.

CREATE FUNCTION is_memory_waiting() RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM agent_events e WHERE e.gathered_at IS NULL) OR EXISTS (
        SELECT 1 FROM embedding_models m
        WHERE m.state <> 'retired' AND NOT m.is_filled OR m.state = 'building' AND m.activate_when_filled);
END $$;

-- One job and the task that carries it out, together.

CREATE FUNCTION file_job(of_model uuid, at_provider text, chosen uuid[], template jsonb) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    job  uuid := new_id();
    task uuid := new_id();
BEGIN
    INSERT INTO embeddings (event_id, model_id) SELECT unnest(chosen), of_model ON CONFLICT DO NOTHING;
    INSERT INTO embedding_jobs (job_id, model_id, task_id, event_ids) VALUES (job, of_model, task, chosen);
    PERFORM store_tasks(jsonb_build_array(template || jsonb_build_object(
        'task_id', task, 'provider', at_provider, 'payload', jsonb_build_object('job_id', job),
        'concerns', :concern_of_memory)));
END $$;

-- Fills in what was there before a model: newest first, 64 events a job, and no more jobs than `at_most` open at once,
-- for new events go before old ones. A model is filled when nothing older is left. Returns how many jobs were filed.

CREATE FUNCTION backfill_models(template jsonb, at_most int) RETURNS int LANGUAGE plpgsql AS $$
DECLARE
    model  embedding_models;
    filed  int := 0;
    chosen uuid[];
BEGIN
    FOR model IN
        SELECT * FROM embedding_models m WHERE m.state <> 'retired' AND NOT m.is_filled
        ORDER BY m.model_id FOR NO KEY UPDATE SKIP LOCKED
    LOOP
        WHILE at_most > (
            SELECT count(*) FROM embedding_jobs j WHERE j.model_id = model.model_id AND j.state = 'waiting')
        LOOP
            chosen := ARRAY(
                SELECT e.event_id FROM agent_events e
                WHERE e.gathered_at IS NOT NULL AND (model.filled_to IS NULL OR e.event_id < model.filled_to)
                  AND NOT EXISTS (
                      SELECT 1 FROM embeddings v WHERE v.event_id = e.event_id AND v.model_id = model.model_id)
                ORDER BY e.event_id DESC LIMIT 64);
            IF cardinality(chosen) = 0 THEN
                -- What was being gathered when the model came may be newer than where this began.
                UPDATE embedding_models m SET is_filled = model.filled_to IS NULL, filled_to = NULL
                WHERE m.model_id = model.model_id;
                EXIT;
            END IF;
            PERFORM file_job(model.model_id, model.provider, chosen, template);
            model.filled_to := chosen[cardinality(chosen)];
            UPDATE embedding_models m SET filled_to = model.filled_to WHERE m.model_id = model.model_id;
            filed := filed + 1;
        END LOOP;
    END LOOP;
    RETURN filed;
END $$;

-- A job that the provider refuses becomes two, each with half of its events: a text that cannot be embedded ends up
-- alone, and the others are. Nothing for an attempt that no longer owns its task, and nothing the second time.

CREATE FUNCTION split_job(fence jsonb, wanted uuid, template jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    job  embedding_jobs;
    half int;
BEGIN
    IF NOT owns_task(fence) THEN RETURN false; END IF;
    DELETE FROM embedding_jobs j WHERE j.job_id = wanted RETURNING * INTO job;
    IF NOT FOUND THEN RETURN false; END IF;
    half := (cardinality(job.event_ids) + 1) / 2;
    PERFORM file_job(m.model_id, m.provider, part.event_ids, template)
    FROM embedding_models m, (VALUES (job.event_ids[:half]), (job.event_ids[half + 1:])) AS part(event_ids)
    WHERE m.model_id = job.model_id AND cardinality(part.event_ids) > 0;
    RETURN true;
END $$;

-- A new model, which gets the vectors of new events from here on and those of old ones by and by; none if there is one
-- of that name.

CREATE FUNCTION create_model(wanted_name text, at_provider text, wide int, when_filled boolean) RETURNS uuid
LANGUAGE plpgsql AS $$
DECLARE
    fresh uuid;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('windlass models'));
    INSERT INTO embedding_models (model_id, name, provider, dimensions, activate_when_filled)
    VALUES (new_id(), wanted_name, at_provider, wide, when_filled)
    ON CONFLICT (provider, name) DO NOTHING RETURNING model_id INTO fresh;
    PERFORM wake_memory();
    RETURN fresh;
END $$;

-- With everything that is of it. The active one is kept: there would be none.

CREATE FUNCTION delete_model(wanted uuid) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    was text;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('windlass models'));
    SELECT m.state INTO was FROM embedding_models m WHERE m.model_id = wanted;
    IF was IN ('building', 'retired') THEN
        DELETE FROM embedding_models m WHERE m.model_id = wanted;
        DELETE FROM embedding_jobs j WHERE j.model_id = wanted;
        DELETE FROM embeddings v WHERE v.model_id = wanted;
        DELETE FROM question_vectors q WHERE q.model_id = wanted;
    END IF;
    RETURN was;
END $$;

-- From one commit to the next another model is the active one: there is never none, and never two.

CREATE FUNCTION activate_model(wanted uuid) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('windlass models'));
    IF NOT EXISTS (SELECT 1 FROM embedding_models m WHERE m.model_id = wanted) THEN RETURN false; END IF;
    UPDATE embedding_models m SET state = 'retired' WHERE m.state = 'active' AND m.model_id <> wanted;
    -- One that was retired has missed what happened since.
    UPDATE embedding_models m SET
        state = 'active', activated_at = clock_timestamp(), filled_to = NULL,
        is_filled = m.is_filled AND m.state <> 'retired'
    WHERE m.model_id = wanted AND m.state <> 'active';
    PERFORM wake_memory();
    RETURN true;
END $$;

-- A model that was made to take over by itself does so when all that was there before it has been asked for and none of
-- its jobs waits: those that failed are listed, and hold nobody up. The newest, if there are several. It does so once:
-- who activates another one afterwards is not overruled.

CREATE FUNCTION activate_filled_model() RETURNS uuid LANGUAGE plpgsql AS $$
DECLARE
    chosen uuid;
BEGIN
    SELECT m.model_id INTO chosen FROM embedding_models m
    WHERE m.activate_when_filled AND m.state = 'building' AND m.is_filled AND NOT EXISTS (
        SELECT 1 FROM embedding_jobs j WHERE j.model_id = m.model_id AND j.state = 'waiting')
    ORDER BY m.model_id DESC LIMIT 1;
    IF chosen IS NOT NULL AND NOT activate_model(chosen) THEN
        chosen := NULL;
    END IF;
    RETURN chosen;
END $$;
