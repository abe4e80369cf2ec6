-- How many dependents one transaction tells. Whoever ended their parent waits for them, and so does whatever else waits
-- for its locks; a few hundred take some tens of milliseconds.

CREATE FUNCTION dependents_at_once() RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT 500 $$;

-- Settles the children of ended tasks and barriers: the last parent that completed unblocks them, one that failed
-- buries them, and so on with what it buries. Returns all that it buried. If there are more than a page, or another
-- transaction has locked one of them, the janitor continues. `locked` are all the tasks that the caller has locked. The
-- moves are written at the end: that can lock tasks that are free, and nothing may be waited for after it.

CREATE FUNCTION settle_dependents(ended uuid[], locked uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    room     int := dependents_at_once();
    children uuid[];
    settled  record;
    buried   uuid[] := '{}';
    moves    jsonb := '[]';
BEGIN
    LOOP
        children := dependents_of(ended, false, room);
        EXIT WHEN children IS NULL;
        room := room - cardinality(children);
        children := lock_dependents(ended, children, locked, false);
        locked := locked || children;
        children := count_down(children, ended);
        EXIT WHEN cardinality(children) = 0;
        SELECT * INTO settled FROM move_children(children);
        moves := moves || coalesce(settled.moves, '[]');
        ended := settled.buried;
        EXIT WHEN ended IS NULL;
        buried := buried || ended;
    END LOOP;
    IF moves <> '[]' THEN
        PERFORM write_moves(moves);
    END IF;
    RETURN buried;
END $$;

-- For callers of `settle_dependents` that may not wait for a lock: no id is larger, so all children are tried and none
-- is waited for.

CREATE FUNCTION wait_for_nobody() RETURNS uuid[] LANGUAGE sql IMMUTABLE AS $$
    SELECT ARRAY['ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid]
$$;

-- Takes ended parents off what their children wait for, and returns the children that have to be counted anew: those
-- that one of them has failed, and those that may wait for nobody now. So a join of a thousand is counted once, and not
-- at each of their ends. A parent is taken off by the transaction that ended it, and whoever comes later counts. One
-- that has lived again may be taken off twice: too early, and then the count says so, but never too late.

CREATE FUNCTION count_down(children uuid[], ended uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    many    uuid[];
    waiting uuid[];
BEGIN
    SELECT array_agg(t.task_id) INTO many FROM unnest(children) AS child(task_id)
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = child.task_id OFFSET 0) AS t
    WHERE t.status IN :sources_of_unblock AND t.unmet > 1 + is_to_be_asked(t.approval)::int;
    IF many IS NULL THEN RETURN children; END IF;

    WITH told AS (
        SELECT d.child_id, count(*)::int AS met FROM unnest(ended) AS one(parent_id)
        CROSS JOIN LATERAL (
            SELECT coalesce((SELECT t.status FROM tasks t WHERE t.task_id = one.parent_id),
                            (SELECT b.status FROM barriers b WHERE b.barrier_id = one.parent_id)) AS status OFFSET 0
        ) AS parent
        CROSS JOIN LATERAL (SELECT * FROM task_dependencies e WHERE e.parent_id = one.parent_id OFFSET 0) AS d
        JOIN unnest(many) AS child(task_id) ON child.task_id = d.child_id
        GROUP BY d.child_id HAVING NOT bool_or(is_open(parent.status, d.met_on))
    ), moved AS (
        UPDATE tasks t SET unmet = t.unmet - told.met, updated_at = clock_timestamp()
        -- Said twice: with the one alone the planner may read all tasks to join them.
        FROM told WHERE t.task_id = told.child_id AND t.task_id = ANY (many)
                    AND t.unmet - told.met > is_to_be_asked(t.approval)::int
        RETURNING t.task_id
    )
    SELECT array_agg(m.task_id) INTO waiting FROM moved m;
    IF waiting IS NULL THEN RETURN children; END IF;
    RETURN ARRAY(SELECT child FROM unnest(children) AS child WHERE child <> ALL (waiting));
END $$;

-- The children of the parents for which there is room, those with the fewest first. The others are written down as
-- unsettled, in the transaction that ended or revived them: appended, so that nobody waits for anybody.

CREATE FUNCTION dependents_of(parents uuid[], revived boolean, room int) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    children uuid[];
    near     uuid[];
    far      uuid[];
BEGIN
    SELECT array_agg(edge.child_id) INTO children FROM (
        SELECT d.child_id FROM task_dependencies d WHERE d.parent_id = ANY (parents) LIMIT room + 1
    ) AS edge;
    IF children IS NULL THEN RETURN NULL; END IF;
    IF cardinality(children) > room THEN
        SELECT array_agg(summed.parent_id) FILTER (WHERE summed.so_far <= room),
               array_agg(summed.parent_id) FILTER (WHERE summed.so_far > room)
        INTO near, far FROM (
            SELECT counted.parent_id, sum(counted.dependents) OVER (
                       ORDER BY counted.dependents, counted.parent_id) AS so_far
            FROM (
                SELECT parent.parent_id, (
                    SELECT count(*) FROM (
                        SELECT 1 FROM task_dependencies d WHERE d.parent_id = parent.parent_id
                        ORDER BY d.child_id LIMIT room + 1) AS edge) AS dependents
                FROM unnest(parents) AS parent(parent_id)
            ) AS counted
            WHERE counted.dependents > 0
        ) AS summed;
        PERFORM leave_unsettled(far, revived);
        SELECT array_agg(d.child_id) INTO children FROM task_dependencies d WHERE d.parent_id = ANY (near);
    END IF;
    RETURN (SELECT array_agg(DISTINCT child) FROM unnest(children) AS child);
END $$;

-- Locks children of those that the caller has moved, and returns them. Tasks are waited for in the order of their ids
-- alone (docs/decisions/0041): who has one locked waits for none with a smaller id, or two could wait for each other.
-- A child has the larger id nearly always, but the clocks that ids are made by differ, and the caller may have locked
-- many. A smaller one is taken if it is free; else its parents are left to the janitor, who has locked nothing before.

CREATE FUNCTION lock_dependents(parents uuid[], children uuid[], locked uuid[], revived boolean)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    highest uuid := (SELECT each FROM unnest(locked) AS each ORDER BY each DESC LIMIT 1);
    behind  uuid[];
    ahead   uuid[];
    free    uuid[] := '{}';
BEGIN
    SELECT array_agg(child) FILTER (WHERE child <= highest), array_agg(child) FILTER (WHERE child > highest)
    INTO behind, ahead FROM unnest(children) AS child;
    IF behind IS NOT NULL THEN
        free := ARRAY(
            SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (behind) FOR NO KEY UPDATE SKIP LOCKED);
        IF cardinality(free) < cardinality(behind) THEN
            PERFORM leave_unsettled(ARRAY(
                SELECT DISTINCT d.parent_id FROM task_dependencies d
                WHERE d.child_id = ANY (behind) AND d.child_id <> ALL (free) AND d.parent_id = ANY (parents)), revived);
        END IF;
    END IF;
    PERFORM 1 FROM tasks t WHERE t.task_id = ANY (ahead) ORDER BY t.task_id FOR NO KEY UPDATE;
    RETURN free || ahead;
END $$;

-- Appended, in the transaction that ended or revived them, so that nobody waits for anybody.

CREATE FUNCTION leave_unsettled(parents uuid[], live_again boolean) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO unsettled (parent_id, revived) SELECT parent, live_again FROM unnest(parents) AS parent;
    PERFORM pg_notify('windlass_settle', '');
END $$;

-- Does the next page of what was left unsettled, and returns what it revived and what it ended, or no row when there is
-- nothing left. The parent itself is not locked: whoever moves it meanwhile comes to its dependents afterwards, and
-- finds them as they are left here. A revival counts the parents anew, and buries again if it must: the parent may have
-- died once more.

CREATE FUNCTION settle_next(at_most int) RETURNS TABLE (revived jsonb, ended jsonb) LANGUAGE plpgsql AS $$
DECLARE
    entry    unsettled;
    children uuid[];
    back     uuid[];
    over     uuid[];
BEGIN
    SELECT * INTO entry FROM unsettled u ORDER BY u.unsettled_id LIMIT 1 FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN RETURN; END IF;
    children := ARRAY(
        SELECT d.child_id FROM task_dependencies d WHERE d.parent_id = entry.parent_id AND d.child_id > entry.settled_to
        ORDER BY d.child_id LIMIT at_most);
    IF entry.revived THEN
        SELECT r.everybody, r.ended INTO back, over FROM revive_tasks(buried_by_parents(children)) AS r;
    ELSE
        PERFORM 1 FROM tasks t WHERE t.task_id = ANY (children) ORDER BY t.task_id FOR NO KEY UPDATE;
        over := settle_children(children);
        over := over || settle_dependents(over, children);
    END IF;
    IF cardinality(children) < at_most THEN
        DELETE FROM unsettled u WHERE u.unsettled_id = entry.unsettled_id;
    ELSE
        UPDATE unsettled u SET settled_to = children[at_most] WHERE u.unsettled_id = entry.unsettled_id;
    END IF;
    RETURN QUERY SELECT counts_of(back), counts_of(over);
END $$;

-- Looks through a page of the blocked for those that an ended parent should have moved, moves them, and says where the
-- next page begins, or null at the end. There should be none: every end settles its dependents or leaves them to
-- `settle_next`, to which they are left here as well. Who waits for more than it believes, because a parent lives
-- again, is told by the ends that are still to come (`count_down`). Nothing is locked but what is found, and what
-- somebody else has locked is left to the next time.

CREATE FUNCTION recheck_blocked(after uuid, at_most int, OUT reached uuid, OUT mended int, OUT ended jsonb)
LANGUAGE plpgsql AS $$
DECLARE
    page    uuid[];
    overdue uuid[];
    over    uuid[];
BEGIN
    page := ARRAY(
        SELECT t.task_id FROM tasks t WHERE t.status = 'blocked' AND t.task_id > after
        ORDER BY t.task_id LIMIT at_most);
    reached := page[at_most];
    SELECT array_agg(c.task_id) INTO overdue FROM states_of_parents(page) AS c
    WHERE (c.failed_parent IS NOT NULL OR c.unmet < c.believed)
      AND NOT EXISTS (
          SELECT 1 FROM task_dependencies d JOIN unsettled u ON u.parent_id = d.parent_id WHERE d.child_id = c.task_id);
    IF overdue IS NOT NULL THEN
        overdue := ARRAY(
            SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (overdue)
            ORDER BY t.task_id FOR NO KEY UPDATE SKIP LOCKED);
        over := settle_children(overdue);
        over := over || settle_dependents(over, overdue);
    END IF;
    mended := coalesce(cardinality(overdue), 0);
    ended := counts_of(over);
END $$;

-- What has become of the parents of blocked tasks, and whether a person's word is all that is missing.

CREATE FUNCTION states_of_parents(children uuid[])
RETURNS TABLE (task_id uuid, believed int, unmet int, failed_parent uuid, asks boolean) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.task_id, t.unmet, waits.unmet, waits.failed_parent, waits.asks
    FROM unnest(children) AS child(task_id)
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = child.task_id OFFSET 0) AS t
    CROSS JOIN LATERAL waits_of(t.task_id, t.approval) AS waits
    WHERE t.status IN :sources_of_unblock;
END $$;

-- Moves blocked tasks by the status of their parents, and returns those that it buried.

CREATE FUNCTION settle_children(children uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    settled record;
BEGIN
    SELECT * INTO settled FROM move_children(children);
    IF settled.moves IS NOT NULL THEN
        PERFORM write_moves(settled.moves);
    END IF;
    RETURN settled.buried;
END $$;

-- The same, but the caller writes the moves. The caller has locked the children, and a later statement counts their
-- parents: of two parents that complete together, the second transaction sees both. Each transaction that moves a
-- parent comes to its children afterwards, so the parents need no lock.

CREATE FUNCTION move_children(children uuid[], OUT buried uuid[], OUT moves jsonb) LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz := clock_timestamp();
    settled uuid[];
    asked   jsonb;
    served  text[];
BEGIN
    WITH moved AS (
        UPDATE tasks t SET
            status = CASE WHEN c.failed_parent IS NOT NULL THEN :target_of_bury
                          WHEN c.unmet = 0 THEN :target_of_unblock ELSE t.status END,
            unmet = c.unmet,
            asked_at = CASE WHEN c.asks THEN coalesce(t.asked_at, moment) END,
            ask_expires_at = CASE WHEN c.asks THEN coalesce(t.asked_at, moment)
                + make_interval(secs => (t.approval ->> 'expires_in_seconds')::float) END,
            error = CASE WHEN c.failed_parent IS NULL THEN t.error ELSE jsonb_build_object(
                'type', 'DependencyFailed', 'kind', 'permanent',
                'message', 'task ' || c.failed_parent || ', which this one depends on, died or was cancelled',
                'details', jsonb_build_object('task_id', c.failed_parent), 'stack_trace', NULL,
                'attempt', t.attempt) END,
            completed_at = CASE WHEN c.failed_parent IS NOT NULL THEN moment END,
            -- Who is held stays so until somebody releases it, or until its end.
            held = CASE WHEN c.failed_parent IS NULL THEN t.held ELSE '{}' END,
            held_at = CASE WHEN c.failed_parent IS NULL THEN t.held_at END,
            due_at = CASE WHEN c.failed_parent IS NULL THEN t.due_at END,
            -- Whoever names no task has waited for a person, or for the tasks of a `for_each`: its time begins now.
            available_at = CASE WHEN c.failed_parent IS NOT NULL THEN coalesce(t.due_at, t.available_at)
                                WHEN c.unmet = 0 AND t.depends_on = '{}' THEN greatest(t.available_at, moment)
                                ELSE t.available_at END,
            updated_at = moment,
            last_seq = t.last_seq
                       + (c.failed_parent IS NOT NULL OR c.unmet = 0 OR (c.asks AND t.asked_at IS NULL))::int
        FROM states_of_parents(children) AS c
        -- Said twice: with the one alone the planner may read all tasks to join them.
        WHERE t.task_id = c.task_id AND t.task_id = ANY (children)
          AND (c.failed_parent IS NOT NULL OR c.unmet <> t.unmet OR c.unmet = 0
               OR c.asks <> (t.asked_at IS NOT NULL))
        RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.error, t.user_id, t.provider, t.actor, t.life,
                  t.concerns, t.approval, t.ask_expires_at,
                  CASE t.status WHEN 'dead' THEN 'bury' WHEN 'blocked' THEN CASE t.asked_at WHEN moment THEN 'ask' END
                                ELSE 'unblock' END AS via
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, m.via, moment, m.attempt,
               jsonb_build_object('status', m.status)
               || CASE m.via WHEN 'bury' THEN jsonb_build_object('error', m.error)
                             WHEN 'ask' THEN jsonb_build_object(
                                 'message', m.approval -> 'message', 'expires_at', m.ask_expires_at) ELSE '{}' END
        FROM moved m WHERE m.via IS NOT NULL
    ), tallies AS (
        INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
        SELECT m.user_id, m.provider, m.actor, 'blocked', -count(*) FROM moved m WHERE m.status = :target_of_unblock
        GROUP BY m.user_id, m.provider, m.actor
    )
    SELECT array_agg(m.task_id), array_agg(m.task_id) FILTER (WHERE m.status = 'dead'),
           jsonb_agg(move_of(m.task_id, m.last_seq, m.life, m.told, 'bury', m.status, moment))
           FILTER (WHERE m.status = 'dead' AND m.told <> 0),
           jsonb_agg(move_of(m.task_id, m.last_seq, m.life, m.told, 'ask', m.status, moment))
           FILTER (WHERE m.via = 'ask' AND m.told & :outbox_bits <> 0), array_agg(m.provider)
    INTO settled, buried, moves, asked, served
    FROM (SELECT moved.*, :all_concerns_of(moved) AS told FROM moved) AS m WHERE m.via IS NOT NULL;

    PERFORM tally_tasks(buried) WHERE buried IS NOT NULL;
    IF asked IS NOT NULL THEN
        PERFORM write_outbox(asked);
    END IF;
    PERFORM wake_streams(settled), wake_dispatcher(served) WHERE settled IS NOT NULL;
END $$;
