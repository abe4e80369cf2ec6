-- Stores new tasks, each with its first event, and returns them whole; for a batch their number is answer enough. A
-- refusal is a row with nothing else in it: raised, it would stand in the server's log as if something were broken.

CREATE FUNCTION submit_tasks(submissions jsonb)
RETURNS TABLE (refusal text, missing text, :columns_of_tasks) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    stored  uuid[];
    strange text;
BEGIN
    SELECT s.submitted, s.missing INTO stored, strange FROM store_tasks(submissions) AS s;
    IF strange IS NOT NULL THEN
        refusal := 'unknown-dependency';
        missing := strange;
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT NULL, NULL, :each_of_tasks(t) FROM tasks t WHERE t.task_id = ANY (stored) ORDER BY t.task_id;
END $$;

-- What a submission leaves out has its default. Parents are locked before they are looked at: a parent that completes
-- at the same moment either is seen as completed here or sees the new edge there. A task that the submitter may not see
-- is as if it did not exist; where one is `missing`, nothing is stored.

CREATE FUNCTION store_tasks(submissions jsonb, OUT submitted uuid[], OUT missing text) LANGUAGE plpgsql AS $$
DECLARE
    wanted_parents uuid[] := '{}';
    started        timestamptz;
    moves          jsonb;
    served         text[];
BEGIN
    IF jsonb_path_exists(submissions, '$[*].depends_on[0]') THEN
        SELECT array_agg(DISTINCT (named #>> '{}')::uuid) INTO wanted_parents
        FROM jsonb_path_query(submissions, '$[*].depends_on[*]') AS named;
        PERFORM 1 FROM tasks t WHERE t.task_id = ANY (wanted_parents) ORDER BY t.task_id FOR SHARE;
        SELECT string_agg(DISTINCT parent::text, ',') INTO missing
        FROM jsonb_to_recordset(submissions) AS s(depends_on uuid[], reach text), unnest(s.depends_on) AS parent
        WHERE NOT EXISTS (
            SELECT 1 FROM tasks t WHERE t.task_id = parent AND (s.reach IS NULL OR t.user_id = s.reach));
        IF missing IS NOT NULL THEN
            RETURN;
        END IF;
    END IF;

    started := clock_timestamp();
    WITH submission AS (
        SELECT s.*, CASE WHEN s.depends_on IS NULL THEN 0 ELSE (
            SELECT count(*) FROM tasks parent
            WHERE parent.task_id = ANY (s.depends_on) AND parent.status <> 'completed') END AS unmet
        FROM jsonb_to_recordset(submissions) AS s(
            task_id uuid, actor text, task_type text, provider text, priority smallint, payload jsonb,
            max_retries int, timeout_seconds float, max_age_seconds float, run_at timestamptz, delay_seconds float,
            user_id text, tags text[], project_id text, workflow_id text, workflow_run_id text, interaction_id text,
            parent_task_id uuid, depends_on uuid[], dedupe_key text, traceparent text,
            retry_delays jsonb, level smallint, concerns int, concurrency_key text)
    ), stored AS (
        INSERT INTO tasks (
            task_id, actor, task_type, provider, status, priority, payload, max_retries, timeout_seconds,
            max_age_seconds, expires_at, available_at, created_at, updated_at, user_id, tags, project_id, workflow_id,
            workflow_run_id, interaction_id, parent_task_id, depends_on, dedupe_key, unmet,
            traceparent, retry_delays, level, concerns, concurrency_key)
        SELECT
            s.task_id, s.actor, s.task_type, s.provider, CASE WHEN s.unmet > 0 THEN 'blocked' ELSE 'queued' END,
            coalesce(s.priority, 2), s.payload, coalesce(s.max_retries, 3), s.timeout_seconds, s.max_age_seconds,
            started + make_interval(secs => s.max_age_seconds),
            coalesce(s.run_at, started + make_interval(secs => coalesce(s.delay_seconds, 0))), started, started,
            s.user_id, coalesce(s.tags, '{}'), s.project_id, s.workflow_id, s.workflow_run_id, s.interaction_id,
            s.parent_task_id, coalesce(s.depends_on, '{}'), s.dedupe_key, s.unmet, s.traceparent,
            s.retry_delays, coalesce(s.level, 0), coalesce(s.concerns, 0), s.concurrency_key
        FROM submission s
        RETURNING tasks.task_id, tasks.status, tasks.user_id, tasks.provider, tasks.actor, tasks.concerns
    ), tallies AS (
        INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
        SELECT s.user_id, s.provider, s.actor, counted.status, count(*) FROM stored s
        CROSS JOIN LATERAL (VALUES ('submitted'), (CASE s.status WHEN 'blocked' THEN s.status END)) AS counted(status)
        WHERE counted.status IS NOT NULL GROUP BY s.user_id, s.provider, s.actor, counted.status
    ), edges AS (
        INSERT INTO task_dependencies (parent_id, child_id)
        SELECT DISTINCT parent, s.task_id FROM submission s, unnest(s.depends_on) AS parent
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT s.task_id, 1, 'submit', started, 0, jsonb_build_object('status', s.status) FROM stored s
    )
    SELECT array_agg(s.task_id),
           jsonb_agg(move_of(s.task_id, 1, 1, s.concerns, 'submit', s.status, started)) FILTER (WHERE s.concerns <> 0),
           array_agg(DISTINCT s.provider)
    INTO submitted, moves, served FROM stored s;

    IF jsonb_path_exists(submissions, '$[*].tags[0]') THEN
        INSERT INTO task_tags (tag, task_id)
        SELECT DISTINCT tag, s.task_id FROM jsonb_to_recordset(submissions) AS s(task_id uuid, tags text[]),
                                            unnest(s.tags) AS tag;
    END IF;
    IF moves IS NOT NULL THEN
        PERFORM tell_moves(moves);
    END IF;
    IF cardinality(wanted_parents) > 0 THEN
        -- A parent may have died before its child came: the child is accepted, and buried with its reason. Nobody else
        -- sees the new rows yet, so there is nobody to wait for.
        PERFORM settle_children(submitted);
    END IF;
    PERFORM wake_streams(submitted), wake_dispatcher(served);
END $$;
