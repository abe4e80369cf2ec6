-- What becomes of its tasks, as a workflow hears it: each move changes its counts by what it says, so that it makes no
-- difference how late and in which order moves come. Of a failure the event has the error, and of a revival an earlier
-- event how the task had ended. The workflow is locked by whoever moved the tasks; it is written once for each call.

CREATE FUNCTION tell_workflow(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz;
    moved   uuid[];
    ids     uuid[];
    changed uuid[];
    before  text[];
    noded   boolean;
    halted  uuid[];
    sources uuid[];
BEGIN
    moved := ARRAY(SELECT m.task_id FROM jsonb_to_recordset(moves) AS m(task_id uuid));
    moment := clock_timestamp();

    WITH heard AS (
        SELECT m.task_id, w.workflow_id, CASE WHEN w.has_nodes THEN key_of_node(t.workflow_key) END AS node_key,
               (m.move = 'submit')::int AS total,
               (m.move IN ('submit', 'revive'))::int - (m.status IN ('completed', 'dead', 'cancelled'))::int AS live,
               (m.status = 'completed')::int AS completed,
               (m.status = 'dead')::int - (ended.was IS NOT DISTINCT FROM 'dead')::int AS dead,
               (m.status = 'cancelled')::int - (ended.was IS NOT DISTINCT FROM 'cancelled')::int AS cancelled,
               -- Looked up for those alone that have died, or live again: as joins they would be for each move.
               CASE WHEN m.status = 'dead' AND (w.resumed_at IS NULL OR m.at > w.resumed_at) THEN (
                   SELECT (coalesce(e.data #>> '{error,type}', '') <> 'DependencyFailed')::int FROM task_events e
                   WHERE e.task_id = m.task_id AND e.seq = m.seq) END AS failures
        FROM jsonb_to_recordset(moves) AS m(task_id uuid, seq int, move text, status text, at timestamptz)
        CROSS JOIN LATERAL (
            SELECT tasks.workflow_id, tasks.workflow_key FROM tasks WHERE tasks.task_id = m.task_id OFFSET 0
        ) AS t
        JOIN workflows w ON w.workflow_id = t.workflow_id::uuid
        CROSS JOIN LATERAL (
            SELECT CASE WHEN m.move = 'revive' THEN (
                SELECT e.data ->> 'status' FROM task_events e
                WHERE e.task_id = m.task_id AND e.seq < m.seq AND e.data ? 'status'
                ORDER BY e.seq DESC LIMIT 1) END AS was OFFSET 0
        ) AS ended
    ), of_nodes AS (
        SELECT h.workflow_id, h.node_key, sum(h.live) AS live, sum(h.completed) AS completed, sum(h.dead) AS dead,
               sum(h.cancelled) AS cancelled
        FROM heard h WHERE h.node_key IS NOT NULL GROUP BY h.workflow_id, h.node_key
    ), nodes AS (
        UPDATE workflow_nodes n SET
            live = n.live + o.live, completed = n.completed + o.completed, dead = n.dead + o.dead,
            cancelled = n.cancelled + o.cancelled
        FROM of_nodes o, workflow_nodes was
        WHERE n.workflow_id = o.workflow_id AND n.key = o.node_key AND was.node_id = n.node_id
        RETURNING n.workflow_id, n.node_id, was.status AS was, n.status
    ), summed AS (
        SELECT each.workflow_id, sum(each.total) AS total, sum(each.live) AS live, sum(each.completed) AS completed,
               sum(each.dead) AS dead, sum(each.cancelled) AS cancelled, sum(each.failures) AS failures
        FROM (
            SELECT h.workflow_id, h.total, h.live, h.completed, h.dead, h.cancelled, coalesce(h.failures, 0) AS failures
            FROM heard h
            UNION ALL
            SELECT n.workflow_id, 0, is_live(n.status) - is_live(n.was),
                   (n.status = 'completed')::int - (n.was = 'completed')::int,
                   (n.status = 'dead')::int - (n.was = 'dead')::int,
                   (n.status = 'cancelled')::int - (n.was = 'cancelled')::int, 0
            FROM nodes n WHERE n.status <> n.was
        ) AS each GROUP BY each.workflow_id
    ), counted AS (
        UPDATE workflows w SET
            total = w.total + s.total, live = w.live + s.live, completed = w.completed + s.completed,
            dead = w.dead + s.dead, cancelled = w.cancelled + s.cancelled, failures = w.failures + s.failures,
            updated_at = moment
        FROM summed s, workflows was
        WHERE w.workflow_id = s.workflow_id AND was.workflow_id = w.workflow_id
        -- One that has only just been stored has had no status before.
        RETURNING w.workflow_id, CASE WHEN was.total > 0 THEN was.status ELSE w.status END AS was, w.status, w.has_nodes
    )
    SELECT array_agg(c.workflow_id), array_agg(c.workflow_id) FILTER (WHERE c.status <> c.was),
           array_agg(c.was) FILTER (WHERE c.status <> c.was), bool_or(c.has_nodes),
           array_agg(c.workflow_id) FILTER (WHERE c.status = 'escalated'),
           (SELECT array_agg(n.node_id) FROM nodes n WHERE n.status <> n.was)
           || (SELECT array_agg(h.task_id) FROM heard h WHERE h.node_key IS NULL)
    INTO ids, changed, before, noded, halted, sources FROM counted c;

    IF changed IS NOT NULL THEN
        PERFORM note_workflows(changed, before);
    END IF;
    IF halted IS NOT NULL THEN
        PERFORM halt_tasks(halted && changed, halted, moved);
    END IF;
    IF noded THEN
        -- The tasks of a `for_each` are nobody's list.
        PERFORM advance_nodes(sources);
    END IF;
    PERFORM wake_streams(ids);
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
    PERFORM call_for_schedules(w.schedule_id) FROM workflows w
    WHERE w.workflow_id = ANY (changed) AND w.schedule_id IS NOT NULL;
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
      AND 'workflow' <> ALL (t.held) AND t.level <= :level
    ORDER BY t.task_id LIMIT at_most;
END $$;
