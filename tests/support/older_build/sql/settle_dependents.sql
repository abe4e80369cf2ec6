-- How many dependents one transaction tells. Whoever ended their parent waits for them, and so does whatever else waits
-- for its locks; a few hundred take some tens of milliseconds.

CREATE FUNCTION dependents_at_once() RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT 500 $$;

-- Tells the children of ended tasks: the last parent completed unblocks them, one that failed buries them, and what it
-- buries is told on. Returns all that it buried. Where there are more than a page, or somebody is in the way, the
-- janitor goes on. `locked` are all the tasks that the caller has locked.

CREATE FUNCTION settle_dependents(ended uuid[], locked uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    room     int := dependents_at_once();
    children uuid[];
    buried   uuid[] := '{}';
BEGIN
    LOOP
        children := dependents_of(ended, false, room);
        EXIT WHEN children IS NULL;
        room := room - cardinality(children);
        children := lock_dependents(ended, children, locked, false);
        locked := locked || children;
        ended := settle_children(children);
        EXIT WHEN ended IS NULL;
        buried := buried || ended;
    END LOOP;
    RETURN buried;
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
-- `settle_next`. Nothing is locked but what is found, and what somebody else has locked is left to the next time.

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
    WHERE c.failed_parent IS NOT NULL OR c.unmet <> c.believed;
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

-- What has become of the parents of blocked tasks. One by one (OFFSET 0 keeps the conditions out): asked for the failed
-- ones among them, the planner may walk through all that ever failed.

CREATE FUNCTION states_of_parents(children uuid[])
RETURNS TABLE (task_id uuid, believed int, unmet bigint, failed_parent uuid) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT t.task_id, t.unmet, parents.unmet, parents.failed
    FROM unnest(children) AS child(task_id)
    CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = child.task_id OFFSET 0) AS t
    CROSS JOIN LATERAL (
        SELECT count(*) FILTER (WHERE p.status <> 'completed') AS unmet,
               min(p.task_id::text) FILTER (WHERE p.status IN ('dead', 'cancelled'))::uuid AS failed
        FROM task_dependencies d
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = d.parent_id OFFSET 0) AS p
        WHERE d.child_id = t.task_id
    ) AS parents
    WHERE t.status IN :sources_of_unblock AND t.level <= :level;
END $$;

-- Moves blocked tasks by what has become of their parents, and returns those that it buried. The caller has locked the
-- children, and their parents are counted anew by a later statement: of two parents that complete together the second
-- sees both. Whoever moves a parent comes to its children afterwards, so the parents need no lock.

CREATE FUNCTION settle_children(children uuid[]) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    moment  timestamptz := clock_timestamp();
    settled uuid[];
    buried  uuid[];
    moves   jsonb;
BEGIN
    WITH moved AS (
        UPDATE tasks t SET
            status = CASE WHEN c.failed_parent IS NOT NULL THEN :target_of_bury
                          WHEN c.unmet = 0 THEN :target_of_unblock ELSE t.status END,
            unmet = c.unmet,
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
            available_at = CASE WHEN c.failed_parent IS NULL THEN t.available_at
                                ELSE coalesce(t.due_at, t.available_at) END,
            updated_at = moment,
            last_seq = t.last_seq + (c.failed_parent IS NOT NULL OR c.unmet = 0)::int
        FROM states_of_parents(children) AS c
        WHERE t.task_id = c.task_id AND (c.failed_parent IS NOT NULL OR c.unmet <> t.unmet OR c.unmet = 0)
        RETURNING t.task_id, t.status, t.last_seq, t.attempt, t.error, t.user_id, t.provider, t.actor, t.life,
                  t.concerns
    ), events AS (
        INSERT INTO task_events (task_id, seq, type, at, attempt, data)
        SELECT m.task_id, m.last_seq, CASE m.status WHEN 'dead' THEN 'bury' ELSE 'unblock' END, moment, m.attempt,
               jsonb_build_object('status', m.status)
               || CASE m.status WHEN 'dead' THEN jsonb_build_object('error', m.error) ELSE '{}' END
        FROM moved m WHERE m.status <> 'blocked'
    ), tallies AS (
        INSERT INTO task_tallies (user_id, provider, actor, status, tasks)
        SELECT m.user_id, m.provider, m.actor, 'blocked', -count(*) FROM moved m WHERE m.status = :target_of_unblock
        GROUP BY m.user_id, m.provider, m.actor
    )
    SELECT array_agg(m.task_id), array_agg(m.task_id) FILTER (WHERE m.status = 'dead'),
           jsonb_agg(move_of(m.task_id, m.last_seq, m.life, m.concerns, 'bury', m.status, moment))
           FILTER (WHERE m.status = 'dead' AND m.concerns <> 0)
    INTO settled, buried, moves FROM moved m WHERE m.status <> 'blocked';

    PERFORM tally_tasks(buried) WHERE buried IS NOT NULL;
    IF moves IS NOT NULL THEN
        PERFORM tell_moves(moves);
    END IF;
    PERFORM wake_streams(settled), wake_dispatcher(providers_of(settled)) WHERE settled IS NOT NULL;
    RETURN buried;
END $$;
