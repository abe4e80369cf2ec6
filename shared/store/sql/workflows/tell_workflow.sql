-- What becomes of its tasks, as a workflow hears it: each move changes its counts by what it says, so that it makes no
-- difference how late and in which order moves come. Of a failure the event has the error, and of a revival an earlier
-- event how the task had ended. The workflow is locked by whoever moved the tasks; it is written once for each call.

CREATE FUNCTION tell_workflow(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    told record;
    past jsonb;
BEGIN
    IF moves @> '[{"status": "dead"}]' OR moves @> '[{"move": "revive"}]' THEN
        past := past_of(moves);
    END IF;
    -- Mostly all are of one workflow and of one node, or of none.
    SELECT array_agg(g.workflow_id) AS workflows, array_agg(g.node_key) AS keys, array_agg(g.total) AS total,
           array_agg(g.completed) AS completed, array_agg(g.dead) AS dead, array_agg(g.cancelled) AS cancelled,
           array_agg(g.live) AS live, array_agg(g.failures) AS failures
    INTO told FROM (
        SELECT t.workflow_id::uuid, t.node_key, count(*) FILTER (WHERE m.move = 'submit') AS total,
               count(*) FILTER (WHERE m.move IN ('submit', 'revive'))
               - count(*) FILTER (WHERE m.status IN ('completed', 'dead', 'cancelled')) AS live,
               count(*) FILTER (WHERE m.status = 'completed') AS completed,
               count(*) FILTER (WHERE m.status = 'dead') - count(*) FILTER (WHERE of.was = 'dead') AS dead,
               count(*) FILTER (WHERE m.status = 'cancelled') - count(*) FILTER (WHERE of.was = 'cancelled')
               AS cancelled,
               count(*) FILTER (WHERE of.failed) AS failures
        FROM jsonb_to_recordset(moves) AS m(task_id uuid, seq int, move text, status text)
        CROSS JOIN LATERAL (
            SELECT tasks.workflow_id, key_of_node(tasks.workflow_key) AS node_key
            FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0
        ) AS t
        CROSS JOIN LATERAL (
            SELECT (past #>> ARRAY[m.task_id::text, m.seq::text, 'failed'])::boolean AS failed,
                   past #>> ARRAY[m.task_id::text, m.seq::text, 'was'] AS was
        ) AS of
        GROUP BY t.workflow_id, t.node_key
    ) AS g;

    PERFORM count_moves(
        ARRAY(SELECT m.task_id FROM jsonb_to_recordset(moves) AS m(task_id uuid)), told.workflows, told.keys,
        told.total, told.live, told.completed, told.dead, told.cancelled, told.failures);
END $$;

-- The same of many that are new, or have completed, and concern a workflow alone: to write down a move for each and to
-- read it takes longer than to count them. As of any teller, what fails here is undone and written down as untold.

CREATE FUNCTION tell_workflow_of_many(moved uuid[], seqs int[], made text, moment timestamptz) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE
    told record;
BEGIN
    SELECT array_agg(g.workflow_id::uuid) AS workflows, array_agg(g.node_key) AS keys, array_agg(g.tasks) AS tasks,
           array_agg(-g.tasks) AS less, array_fill(0::bigint, ARRAY[count(*)::int]) AS none
    INTO told FROM (
        SELECT t.workflow_id, t.node_key, count(*) AS tasks FROM unnest(moved) AS one(task_id)
        CROSS JOIN LATERAL (
            SELECT tasks.workflow_id, key_of_node(tasks.workflow_key) AS node_key
            FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0
        ) AS t
        GROUP BY t.workflow_id, t.node_key
    ) AS g;
    IF made = 'submit' THEN
        PERFORM count_moves(moved, told.workflows, told.keys, told.tasks, told.tasks, told.none, told.none, told.none,
                            told.none);
    ELSE
        PERFORM count_moves(moved, told.workflows, told.keys, told.none, told.less, told.tasks, told.none, told.none,
                            told.none);
    END IF;
EXCEPTION
    WHEN transaction_rollback OR lock_not_available OR operator_intervention OR insufficient_resources THEN
        RAISE;
    WHEN OTHERS THEN
        INSERT INTO untold (subject, task_id, seq, move, error)
        SELECT 'workflow', t.task_id, m.seq,
               move_of(t.task_id, m.seq, t.life, t.concerns, made, t.status, moment), SQLERRM || ' (' || SQLSTATE || ')'
        FROM unnest(moved, seqs) AS m(task_id, seq) JOIN tasks t ON t.task_id = m.task_id;
END $$;

-- Adds to workflows, and to the nodes whose tasks some of those `moved` are, what has become of them, by workflow and
-- node, and does what follows from it.

CREATE FUNCTION count_moves(
    moved uuid[], of_workflows uuid[], keys text[], total bigint[], live bigint[], completed bigint[], dead bigint[],
    cancelled bigint[], failures bigint[]
)
RETURNS void LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    nodes    record;
    counted  record;
    of_nodes int := cardinality(array_remove(keys, NULL));
    sources  uuid[];
BEGIN
    IF of_nodes > 0 THEN
        WITH moved AS (
            UPDATE workflow_nodes n SET
                live = n.live + o.live, completed = n.completed + o.completed, dead = n.dead + o.dead,
                cancelled = n.cancelled + o.cancelled
            FROM unnest(count_moves.of_workflows, keys, count_moves.live, count_moves.completed, count_moves.dead,
                        count_moves.cancelled)
                 AS o(workflow_id, key, live, completed, dead, cancelled), workflow_nodes was
            WHERE n.workflow_id = o.workflow_id AND n.key = o.key AND was.node_id = n.node_id
            RETURNING n.workflow_id, n.node_id, was.status AS was, n.status
        )
        SELECT array_agg(m.node_id) AS ids, array_agg(m.workflow_id) AS workflows, array_fill(0, ARRAY[count(*)::int])
               AS none, array_agg(is_live(m.status) - is_live(m.was)) AS live,
               array_agg((m.status = 'completed')::int - (m.was = 'completed')::int) AS completed,
               array_agg((m.status = 'dead')::int - (m.was = 'dead')::int) AS dead,
               array_agg((m.status = 'cancelled')::int - (m.was = 'cancelled')::int) AS cancelled
        INTO nodes FROM moved m WHERE m.status <> m.was;
        sources := nodes.ids;
        IF sources IS NOT NULL THEN
            of_workflows := of_workflows || nodes.workflows;
            total := total || nodes.none::bigint[];
            live := live || nodes.live::bigint[];
            completed := completed || nodes.completed::bigint[];
            dead := dead || nodes.dead::bigint[];
            cancelled := cancelled || nodes.cancelled::bigint[];
            failures := failures || nodes.none::bigint[];
        END IF;
    END IF;

    WITH counted AS (
        UPDATE workflows w SET
            total = w.total + s.total, live = w.live + s.live, completed = w.completed + s.completed,
            dead = w.dead + s.dead, cancelled = w.cancelled + s.cancelled, failures = w.failures + s.failures,
            updated_at = clock_timestamp()
        FROM (
            SELECT each.workflow_id, sum(each.total) AS total, sum(each.live) AS live,
                   sum(each.completed) AS completed, sum(each.dead) AS dead, sum(each.cancelled) AS cancelled,
                   sum(each.failures) AS failures
            FROM unnest(count_moves.of_workflows, count_moves.total, count_moves.live, count_moves.completed,
                        count_moves.dead, count_moves.cancelled, count_moves.failures)
                 AS each(workflow_id, total, live, completed, dead, cancelled, failures)
            GROUP BY each.workflow_id
        ) AS s, workflows was
        WHERE w.workflow_id = s.workflow_id AND was.workflow_id = w.workflow_id
        -- One that has only just been stored has had no status before.
        RETURNING w.workflow_id, CASE WHEN was.total > 0 THEN was.status ELSE w.status END AS was, w.status, w.has_nodes
    )
    SELECT array_agg(c.workflow_id) AS ids, array_agg(c.workflow_id) FILTER (WHERE c.status <> c.was) AS changed,
           array_agg(c.was) FILTER (WHERE c.status <> c.was) AS before, bool_or(c.has_nodes) AS noded,
           array_agg(c.workflow_id) FILTER (WHERE c.status = 'escalated') AS halted
    INTO counted FROM counted c;

    IF counted.changed IS NOT NULL THEN
        PERFORM note_workflows(counted.changed, counted.before);
    END IF;
    IF counted.halted IS NOT NULL THEN
        PERFORM halt_tasks(counted.halted && counted.changed, counted.halted, moved);
    END IF;
    IF counted.noded THEN
        -- The tasks of a `for_each` are nobody's list.
        IF of_nodes < cardinality(keys) THEN
            sources := sources || ARRAY(
                SELECT t.task_id FROM unnest(moved) AS m(task_id)
                CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
                WHERE key_of_node(t.workflow_key) IS NULL);
        END IF;
        PERFORM advance_nodes(sources);
    END IF;
    PERFORM wake_streams(counted.ids);
END $$;

-- By task and number of the move, what has to be looked up in the events of those alone that died, or live again:
-- whether it is a failure of the workflow, and as what the task had ended.

CREATE FUNCTION past_of(moves jsonb) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT jsonb_object_agg(of.task_id, of.moves) FROM (
            SELECT m.task_id, jsonb_object_agg(m.seq, jsonb_build_object(
                'failed', m.status = 'dead' AND (w.resumed_at IS NULL OR m.at > w.resumed_at) AND EXISTS (
                    SELECT 1 FROM task_events e WHERE e.task_id = m.task_id AND e.seq = m.seq
                       AND coalesce(e.data #>> '{error,type}', '') <> 'DependencyFailed'),
                'was', CASE WHEN m.move = 'revive' THEN (
                    SELECT e.data ->> 'status' FROM task_events e
                    WHERE e.task_id = m.task_id AND e.seq < m.seq AND e.data ? 'status'
                    ORDER BY e.seq DESC LIMIT 1) END)) AS moves
            FROM jsonb_to_recordset(moves) AS m(task_id uuid, seq int, move text, status text, at timestamptz)
            CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0) AS t
            JOIN workflows w ON w.workflow_id = t.workflow_id::uuid
            WHERE m.status = 'dead' OR m.move = 'revive' GROUP BY m.task_id
        ) AS of);
END $$;

CREATE FUNCTION is_live(status text) RETURNS int LANGUAGE sql IMMUTABLE AS $$
    SELECT (status IN ('blocked', 'queued', 'running', 'retrying'))::int
$$;

-- Writes down that workflows have another status than they had, each with an event, and when it ended if it has.

CREATE FUNCTION note_workflows(changed uuid[], before text[], said text DEFAULT NULL) RETURNS void
LANGUAGE plpgsql AS $$
BEGIN
    WITH noted AS (
        UPDATE workflows w SET
            last_seq = w.last_seq + 1, updated_at = clock_timestamp(),
            completed_at = CASE WHEN w.status IN ('completed', 'failed', 'cancelled') THEN clock_timestamp() END
        FROM unnest(changed, before) AS was(workflow_id, status) WHERE w.workflow_id = was.workflow_id
        RETURNING w.*, was.status AS was
    )
    INSERT INTO workflow_events (workflow_id, seq, type, at, data)
    SELECT n.workflow_id, n.last_seq, coalesce(said, CASE n.status
               WHEN 'completed' THEN 'complete' WHEN 'failed' THEN 'fail' WHEN 'escalated' THEN 'escalate'
               WHEN 'cancelled' THEN 'cancel' ELSE CASE n.was WHEN 'escalated' THEN 'resume' ELSE 'revive' END END),
           n.updated_at, jsonb_build_object('status', n.status, 'was', n.was, 'failures', n.failures, 'counts',
               jsonb_build_object('total', n.total, 'live', n.live, 'completed', n.completed, 'dead', n.dead,
                                  'cancelled', n.cancelled))
    FROM noted n;
    PERFORM tell_of_workflows(changed), pg_notify('windlass_workflows', '');
    PERFORM write_event('schedule', w.schedule_id, w.status) FROM workflows w
    WHERE w.workflow_id = ANY (changed) AND w.schedule_id IS NOT NULL
      AND w.status IN ('completed', 'failed', 'cancelled');
END $$;

-- Makes what waits of escalated workflows stand still: what has just come to wait, and, when they have just become so,
-- all. Tasks are locked already, and more are only tried; what somebody else has locked is left to the janitor, and
-- claimed by nobody meanwhile (`:is_halted`).

CREATE FUNCTION halt_tasks(just_now boolean, halted uuid[], moved uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    wanted uuid[];
    free   uuid[];
BEGIN
    IF just_now THEN
        UPDATE workflows w SET unfinished = true WHERE w.workflow_id = ANY (halted);
        wanted := ARRAY(
            SELECT waiting.task_id FROM unnest(halted) AS of(workflow_id)
            CROSS JOIN LATERAL waiting_of(of.workflow_id, dependents_at_once()) AS waiting(task_id));
    END IF;
    wanted := wanted || ARRAY(
        SELECT t.task_id FROM unnest(moved) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        WHERE t.status IN ('blocked', 'queued', 'retrying') AND t.workflow_id = ANY (halted::text[]));
    free := ARRAY(SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (wanted) FOR NO KEY UPDATE SKIP LOCKED);
    IF cardinality(free) > 0 THEN
        PERFORM hold_tasks(free, 'workflow');
    END IF;
END $$;

-- Those of a workflow that wait and are not held for it yet.

CREATE FUNCTION waiting_of(id uuid, at_most int) RETURNS SETOF uuid LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN QUERY
    SELECT t.task_id FROM tasks t
    WHERE t.workflow_id = id::text AND t.status IN ('blocked', 'queued', 'running', 'retrying')
      AND t.status <> 'running' AND t.concerns & :concern_of_workflow <> 0 AND NOT t.job_open
      AND 'workflow' <> ALL (t.held)
    ORDER BY t.task_id LIMIT at_most;
END $$;
