-- Stores new tasks, each with its first event, and returns them whole; for a batch their number is answer enough. A
-- refusal is a row with nothing else in it: raised, it would stand in the server's log as if something were broken.

CREATE FUNCTION submit_tasks(submissions jsonb)
RETURNS TABLE (refusal text, missing text, :columns_of_tasks) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    stored  uuid[];
BEGIN
    SELECT s.submitted, s.missing, s.refusal INTO stored, missing, refusal FROM store_tasks(submissions) AS s;
    IF refusal IS NOT NULL THEN
        RETURN NEXT;
        RETURN;
    END IF;
    RETURN QUERY
    SELECT NULL, NULL, :each_of_tasks(t) FROM tasks t WHERE t.task_id = ANY (stored) ORDER BY t.task_id;
END $$;

-- What a submission leaves out has its default. Parents are locked before they are looked at: a parent that completes
-- at the same moment either is seen as completed here or sees the new edge there. A task that the submitter may not see
-- is as if it did not exist; where one is `missing`, nothing is stored. Nor is a child of a task that somebody wants
-- cancelled: whoever cancels all that came of a task would miss it. Those of one call may depend on each other. `unmet`
-- is what `waits_of` counts, once the rows are there; before that, a blocked task has to have some. A feature that
-- counts new tasks gets an outbox row for each, unless it is the `submitter` itself (its bit).

CREATE FUNCTION store_tasks(
    submissions jsonb, submitter int DEFAULT 0, OUT submitted uuid[], OUT missing text, OUT refusal text
) LANGUAGE plpgsql AS $$
DECLARE
    started        timestamptz;
    moves          jsonb;
    served         text[];
    born_as        text[];
    users          text[];
    of_actors      text[];
    there          uuid[];
    is_plain       boolean;
    has_parents    boolean;
    waits          jsonb;
    open_to_change uuid[];
BEGIN
    -- Most have nothing that has to be looked at before, and of one this is seen at once. Plain paths take less time
    -- than one with a filter.
    is_plain := jsonb_array_length(submissions) = 1 AND NOT submissions -> 0 ?| ARRAY[
        'webhook_url', 'group_id', 'depends_on', 'parent_task_id', 'depends_on_barriers', 'approval'];
    IF NOT is_plain THEN
        IF jsonb_path_exists(submissions, '$[*].webhook_url') THEN
            submissions := with_endpoints(submissions);
        END IF;
        SELECT r.waits, r.there, r.has_parents, r.missing, r.refusal INTO waits, there, has_parents, missing, refusal
        FROM look_at_relatives(submissions) AS r;
        IF refusal IS NOT NULL THEN RETURN; END IF;
    END IF;

    started := clock_timestamp();
    WITH submission AS (
        SELECT s.*, coalesce((waits ->> s.task_id::text)::int, 0) + coalesce(cardinality(s.depends_on_barriers), 0)
                    + is_to_be_asked(s.approval)::int AS unmet
        FROM jsonb_to_recordset(submissions) AS s(
            task_id uuid, actor text, task_type text, provider text, priority smallint, payload jsonb,
            max_retries int, timeout_seconds float, max_age_seconds float, run_at timestamptz, delay_seconds float,
            user_id text, tags text[], project_id text, workflow_id text, workflow_run_id text, interaction_id text,
            parent_task_id uuid, depends_on uuid[], dedupe_key text, traceparent text,
            retry_delays jsonb, concerns int, concurrency_key text, request_id text, workflow_key text,
            approval jsonb, depends_on_barriers uuid[], webhook_id uuid, group_id uuid)
    ), stored AS (
        INSERT INTO tasks (
            task_id, actor, task_type, provider, status, priority, payload, max_retries, timeout_seconds,
            max_age_seconds, expires_at, available_at, created_at, updated_at, user_id, tags, project_id, workflow_id,
            workflow_run_id, interaction_id, parent_task_id, depends_on, dedupe_key, unmet,
            traceparent, retry_delays, concerns, concurrency_key, request_id, workflow_key, approval,
            webhook_id, group_id)
        SELECT
            s.task_id, s.actor, s.task_type, s.provider, CASE WHEN s.unmet > 0 THEN 'blocked' ELSE 'queued' END,
            coalesce(s.priority, 2), s.payload, coalesce(s.max_retries, 3), s.timeout_seconds, s.max_age_seconds,
            started + make_interval(secs => s.max_age_seconds),
            coalesce(s.run_at, started + make_interval(secs => coalesce(s.delay_seconds, 0))), started, started,
            s.user_id, coalesce(s.tags, '{}'), s.project_id, s.workflow_id, s.workflow_run_id, s.interaction_id,
            s.parent_task_id, coalesce(s.depends_on, '{}'), s.dedupe_key, s.unmet, s.traceparent,
            s.retry_delays, coalesce(s.concerns, 0), s.concurrency_key, s.request_id,
            s.workflow_key, s.approval, s.webhook_id, s.group_id
        FROM submission s
        RETURNING tasks.task_id, tasks.status, tasks.user_id, tasks.provider, tasks.actor, tasks.concerns
    )
    SELECT array_agg(s.task_id), array_agg(s.status), array_agg(s.user_id), array_agg(s.provider), array_agg(s.actor),
           jsonb_agg(move_of(s.task_id, 1, 1, s.concerns & :receives_submits, 'submit', s.status, started))
           FILTER (WHERE s.concerns & :receives_submits & ~submitter <> 0)
    INTO submitted, born_as, users, served, of_actors, moves FROM stored s;
    -- Beside each other, and one without being counted: together they would be one large statement to begin.
    INSERT INTO task_events (task_id, seq, type, at, attempt, data)
    SELECT s.task_id, 1, 'submit', started, 0, jsonb_build_object('status', s.status)
    FROM unnest(submitted, born_as) AS s(task_id, status);
    IF cardinality(submitted) = 1 THEN
        INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
        VALUES (users[1], served[1], of_actors[1], 'submitted', 1);
    ELSE
        INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
        SELECT s.user_id, s.provider, s.actor, 'submitted', count(*)
        FROM unnest(users, served, of_actors) AS s(user_id, provider, actor)
        GROUP BY s.user_id, s.provider, s.actor;
    END IF;

    IF NOT is_plain AND (has_parents OR jsonb_path_exists(submissions, '$[*].depends_on_barriers[0]')) THEN
        INSERT INTO task_dependencies (parent_id, child_id, met_on, by_barrier)
        SELECT DISTINCT parent, s.task_id,
               CASE WHEN parent = ANY (s.after_end) THEN 'ended' ELSE 'completed' END,
               coalesce(parent = ANY (s.depends_on_barriers), false)
        FROM jsonb_to_recordset(submissions)
            AS s(task_id uuid, depends_on uuid[], after_end uuid[], depends_on_barriers uuid[]),
            unnest(s.depends_on || s.depends_on_barriers) AS parent;
    END IF;
    IF jsonb_path_exists(submissions, '$[*].tags[0]') THEN
        INSERT INTO task_tags (tag, task_id)
        SELECT DISTINCT tag, s.task_id FROM jsonb_to_recordset(submissions) AS s(task_id uuid, tags text[]),
                                            unnest(s.tags) AS tag;
    END IF;
    IF moves IS NOT NULL THEN
        PERFORM write_outbox(moves);
    END IF;
    IF 'blocked' = ANY (born_as) THEN
        INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
        SELECT s.user_id, s.provider, s.actor, s.status, count(*)
        FROM unnest(users, served, of_actors, born_as) AS s(user_id, provider, actor, status)
        WHERE s.status = 'blocked' GROUP BY s.user_id, s.provider, s.actor, s.status;
        -- A parent may have died before its child came: the child is accepted, and buried with its reason. And who
        -- waits for a person alone has been asked about. Who waits for others of this call is counted already. Nobody
        -- else sees the new rows yet, so there is nobody to wait for.
        SELECT array_agg(s.task_id) INTO open_to_change
        FROM jsonb_to_recordset(submissions)
            AS s(task_id uuid, depends_on uuid[], depends_on_barriers uuid[], approval jsonb)
        WHERE s.depends_on && there OR cardinality(s.depends_on_barriers) > 0 OR s.approval IS NOT NULL;
        PERFORM settle_children(open_to_change) WHERE open_to_change IS NOT NULL;
    END IF;
    PERFORM wake_streams(submitted), wake_dispatcher(served);
END $$;

-- What new tasks have to do with others: how many parents each of them `waits` for, which of those named are `there`,
-- locked from here on, and what is against it.

CREATE FUNCTION look_at_relatives(
    submissions jsonb, OUT waits jsonb, OUT there uuid[], OUT has_parents boolean, OUT missing text, OUT refusal text
) LANGUAGE plpgsql AS $$
DECLARE
    wanted_parents uuid[];
    makers         uuid[];
    known          uuid[];
    states         text[];
BEGIN
    has_parents := jsonb_path_exists(submissions, '$[*].depends_on[0]');
    IF jsonb_path_exists(submissions, '$[*].group_id') THEN
        missing := closed_groups(submissions);
        IF missing IS NOT NULL THEN
            refusal := 'group-closed';
            RETURN;
        END IF;
    END IF;
    IF has_parents OR jsonb_path_exists(submissions, '$[*].parent_task_id') THEN
        -- Those of this call are not there yet, and are looked for nowhere: in a workflow that is nearly all of them.
        wanted_parents := ARRAY(
            SELECT parent FROM jsonb_to_recordset(submissions) AS s(depends_on uuid[]), unnest(s.depends_on) AS parent
            EXCEPT SELECT own.task_id FROM jsonb_to_recordset(submissions) AS own(task_id uuid));
        makers := ARRAY(
            SELECT DISTINCT (named #>> '{}')::uuid FROM jsonb_path_query(submissions, '$[*].parent_task_id') AS named);
        there := ARRAY(
            SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (wanted_parents || makers)
            ORDER BY t.task_id FOR SHARE);
        SELECT string_agg(t.task_id::text, ',') INTO missing FROM tasks t
        WHERE t.task_id = ANY (makers) AND t.cancel_requested;
        IF missing IS NOT NULL THEN
            refusal := 'parent-cancelled';
            RETURN;
        END IF;
    END IF;
    IF cardinality(wanted_parents) > 0 THEN
        SELECT string_agg(DISTINCT named.parent::text, ',') INTO missing
        FROM (
            SELECT DISTINCT wanted.parent, s.reach
            FROM jsonb_to_recordset(submissions) AS s(depends_on uuid[], reach text)
            CROSS JOIN LATERAL unnest(s.depends_on) AS own(parent)
            JOIN unnest(wanted_parents) AS wanted(parent) ON wanted.parent = own.parent
        ) AS named
        WHERE NOT EXISTS (
            SELECT 1 FROM tasks t WHERE t.task_id = named.parent AND (named.reach IS NULL OR t.user_id = named.reach));
        IF missing IS NOT NULL THEN
            refusal := 'unknown-dependency';
            RETURN;
        END IF;
        SELECT array_agg(t.task_id), array_agg(t.status) INTO known, states
        FROM tasks t WHERE t.task_id = ANY (wanted_parents);
    END IF;
    IF has_parents THEN
        SELECT jsonb_object_agg(waiting.task_id, waiting.parents) INTO waits FROM (
            SELECT s.task_id, count(DISTINCT named.parent) AS parents
            FROM jsonb_to_recordset(submissions) AS s(task_id uuid, depends_on uuid[], after_end uuid[])
            CROSS JOIN LATERAL unnest(s.depends_on) AS named(parent)
            LEFT JOIN unnest(known, states) AS p(task_id, status) ON p.task_id = named.parent
            WHERE p.status IS NULL
               OR is_open(p.status, CASE WHEN named.parent = ANY (s.after_end) THEN 'ended' ELSE 'completed' END)
            GROUP BY s.task_id
        ) AS waiting;
    END IF;
END $$;
