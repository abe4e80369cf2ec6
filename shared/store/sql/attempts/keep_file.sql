-- Keeps a file of an attempt's own making, which is safe under its place, as a generation that nobody has ordered. Its
-- ids come from the task and the file's contents, so that a later attempt with the same file finds it kept. Refused to
-- an attempt that no longer owns its task.

CREATE FUNCTION keep_file(fence jsonb, file jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    moment timestamptz;
BEGIN
    IF NOT owns_task(fence) THEN RETURN false; END IF;
    moment := clock_timestamp();
    INSERT INTO generations (
        generation_id, task_id, attempt, user_id, provider, operation, status, request, provider_job_id, callback_hash,
        workflow_run_id, interaction_id, created_at, updated_at, ended_at)
    SELECT (file ->> 'generation_id')::uuid, t.task_id, t.attempt, t.user_id, t.provider, 'store', 'completed', '{}',
           file ->> 'generation_id', sha256(gen_random_uuid()::text::bytea), t.workflow_run_id, t.interaction_id,
           moment, moment, moment
    FROM tasks t WHERE t.task_id = (fence ->> 'task_id')::uuid
    ON CONFLICT (generation_id) DO NOTHING;
    INSERT INTO contents (
        content_id, generation_id, index, provider_url, media_type, extension, place, size_bytes, sha256, created_at)
    SELECT f.content_id, f.generation_id, 0, '', f.media_type, f.extension, f.place, f.size_bytes, f.sha256, moment
    FROM jsonb_to_record(file) AS f(
        content_id uuid, generation_id uuid, media_type text, extension text, place text, size_bytes bigint,
        sha256 text)
    ON CONFLICT (content_id) DO NOTHING;
    RETURN true;
END $$;
