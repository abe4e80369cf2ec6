-- Who is next of one provider, locked: as many as are wanted and may start, of a worker's own queues. Where something
-- guards the provider, all its queues that somebody serves who has a place free stand in one line, and so do those that
-- must run alone: a slot whose turn is another's is left to that one (`passed`), or it would stay inside one queue for
-- days. It looks without locks first, shares between the lanes, and then locks so many of each queue, lane and
-- priority, in order: what somebody else has locked is passed over, and the next is taken; where that leaves places
-- free it looks again without those, so that a row that nobody can have holds up nobody. Nor does what is to be left
-- `aside`. Where it `has_keys`, the caller has locked the provider, and whose key is full does not start.

CREATE FUNCTION next_tasks(
    p providers, own text[], wanted int, aside uuid[], has_keys boolean, heard_within_seconds float,
    moment timestamptz,
    OUT chosen uuid[], OUT queues text[], OUT words text[], OUT passed boolean
) LANGUAGE plpgsql AS $$
DECLARE
    guarded boolean := is_guarded(p);
    trial   boolean := is_on_trial(p);
    slots   bigint := 1000000;
    before  int := p.lane_credit;
    found   uuid[];
    missed  uuid[];
    crowded uuid[];
    line    record;
    suspect text;
BEGIN
    chosen := '{}';
    queues := '{}';
    words := '{}';
    passed := false;
    IF guarded THEN
        IF bar_of(p, moment) IS NOT NULL THEN RETURN; END IF;
        slots := greatest(free_slots(p, moment), 0);
    ELSE
        -- Its row is not written to: by the dice the share comes out all the same.
        p.lane_credit := floor(random() * 100);
    END IF;
    chosen := next_resumes(p.name, own, CASE WHEN trial THEN least(wanted, 1) ELSE wanted END, aside, moment);
    wanted := wanted - cardinality(chosen);
    IF trial AND cardinality(chosen) > 0 THEN RETURN; END IF;

    -- Where keys are full, or rows are locked, it chooses again, for others may go before them; but not for ever.
    FOR look IN 1..20 LOOP
        SELECT * INTO line FROM stand_in_line(
            p, own, least(wanted, slots)::int, chosen || aside, guarded, heard_within_seconds, moment) AS l;
        found := CASE WHEN NOT trial THEN lock_in_order(
                          line.of_queues, line.of_lanes, line.of_priorities, line.numbers, line.firsts,
                          chosen || aside, moment)
                      WHEN least(wanted, slots) > 0 THEN next_on_trial(own, aside, moment) ELSE '{}' END;
        p.lane_credit := line.credit;
        passed := passed OR line.passed;
        missed := NULL;
        IF NOT trial AND cardinality(line.turns) > cardinality(found) THEN
            missed := ARRAY(SELECT one FROM unnest(line.turns) AS one WHERE one <> ALL (found));
        END IF;
        crowded := CASE WHEN has_keys AND cardinality(found) > 0 THEN beyond_room(found, chosen, moment) END;
        IF crowded IS NOT NULL THEN
            found := ARRAY(SELECT one FROM unnest(found) AS one WHERE one <> ALL (crowded));
        END IF;
        chosen := chosen || found;
        wanted := wanted - cardinality(found);
        slots := slots - cardinality(found);
        EXIT WHEN missed IS NULL AND (crowded IS NULL OR cardinality(park_keys_of(crowded, chosen, moment)) = 0);
        aside := aside || missed;
    END LOOP;
    -- Slots are free for which nobody has asked here: the dispatcher finds somebody who does.
    passed := passed OR (guarded AND NOT trial AND line.has_more AND slots > wanted);
    IF guarded AND p.lane_credit <> before THEN
        UPDATE providers SET lane_credit = p.lane_credit WHERE name = p.name;
    END IF;
    IF line.has_more THEN
        queues := own;
        words := array_fill('more'::text, ARRAY[cardinality(own)]);
    END IF;
    -- OFFSET 0 keeps the queues out, by which all that is due could be read instead. So could it where the planner
    -- believes that there are no tasks and takes one index for as good as another: only the right one has this order.
    SELECT t.queue INTO suspect FROM (
        SELECT * FROM tasks WHERE tasks.suspicion >= 2 AND tasks.status IN :sources_of_claim
        ORDER BY tasks.suspicion OFFSET 0
    ) AS t
    WHERE t.queue = ANY (own) AND :due_at(moment) LIMIT 1;
    IF suspect IS NOT NULL THEN
        queues := queues || suspect;
        words := words || 'suspect'::text;
    END IF;
END $$;

-- Those that only go on waiting for an open job, locked. Most providers have none, and are asked once.

CREATE FUNCTION next_resumes(of_provider text, own text[], wanted int, without uuid[], moment timestamptz)
RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    open uuid[];
BEGIN
    SELECT array_agg(one.task_id) INTO open FROM (
        -- OFFSET 0 keeps the other conditions out, so that only the open jobs are read and not all that is due.
        SELECT t.task_id FROM (
            SELECT * FROM tasks WHERE tasks.provider = of_provider AND tasks.job_open OFFSET 0
        ) AS t
        WHERE t.queue = ANY (own) AND NOT runs_alone(t.suspicion) AND t.task_id <> ALL (without) AND :due_at(moment)
        ORDER BY t.priority, t.available_at, t.task_id LIMIT wanted + 20 -- should somebody have locked the first
    ) AS one;
    IF open IS NULL THEN RETURN '{}'; END IF;
    RETURN ARRAY(
        SELECT t.task_id FROM unnest(open) AS one(task_id) CROSS JOIN LATERAL (
            SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0 FOR NO KEY UPDATE SKIP LOCKED
        ) AS t
        WHERE :due_at(moment) LIMIT greatest(wanted, 0));
END $$;

-- For a trial, one that was told 429 itself goes only if the first that are due all were; and fresh ones go first, for
-- who has never failed was never told so.

CREATE FUNCTION next_on_trial(own text[], without uuid[], moment timestamptz) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    candidates uuid[];
BEGIN
    SELECT array_agg(one.task_id ORDER BY one.place) INTO candidates FROM (
        SELECT w.task_id, row_number() OVER (
            ORDER BY t.rate_limited_count > 0, w.lane, w.priority, w.available_at, w.task_id) AS place
        FROM waiting_in_line(own, 50, without, false, moment) AS w
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = w.task_id OFFSET 0) AS t
    ) AS one WHERE one.place <= 5;
    RETURN ARRAY(
        SELECT t.task_id FROM unnest(candidates) AS one(task_id) CROSS JOIN LATERAL (
            SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0 FOR NO KEY UPDATE SKIP LOCKED
        ) AS t
        WHERE :due_at(moment) AND (t.group_id IS NULL OR NOT :is_stopped(t)) LIMIT 1);
END $$;

-- How many of each of the own queues, lanes and priorities are next, and who, without a lock; whether more are due than
-- may go, and whether the turn of some is another's. Who must run alone and has its turn is noted: for half a minute a
-- slot is left to it, in which a process of its own can start; should none come, others go before it for five minutes.

CREATE FUNCTION stand_in_line(
    p providers, own text[], wanted int, without uuid[], guarded boolean, heard_within_seconds float,
    moment timestamptz,
    OUT of_queues text[], OUT of_lanes text[], OUT of_priorities int[], OUT numbers int[],
    OUT firsts timestamptz[], OUT turns uuid[], OUT has_more boolean, OUT passed boolean, OUT credit int
) LANGUAGE plpgsql AS $$
DECLARE
    considered text[] := own;
    alone      uuid[];
    floors     jsonb;
    before     bigint;
    seen       bigint;
BEGIN
    wanted := greatest(wanted, 0);
    IF guarded THEN
        considered := own || others_with_a_place(p.name, own, heard_within_seconds);
    END IF;
    floors := CASE WHEN current_setting('windlass.floors', true) <> '' THEN floors_of(considered, moment) END;
    IF floors IS NOT NULL AND NOT EXISTS (
        SELECT 1 FROM waiting_in_line(considered, 1, without, guarded, moment, floors)
    ) THEN
        floors := NULL;
    END IF;
    before := pg_stat_get_xact_tuples_returned('tasks_due'::regclass);
    WITH line AS MATERIALIZED (
        SELECT w.*, row_number() OVER (PARTITION BY w.lane ORDER BY w.priority, w.available_at, w.task_id) AS place
        FROM waiting_in_line(considered, wanted + 1, without, guarded, moment, floors) AS w
    ), due AS (
        SELECT count(*) FILTER (WHERE l.lane = 'fresh')::int AS fresh,
               count(*) FILTER (WHERE l.lane = 'retry')::int AS retry FROM line l
    ), shared AS MATERIALIZED (
        SELECT s.* FROM due CROSS JOIN LATERAL share_between_lanes(
            wanted, due.fresh, due.retry, p.retry_share, p.lane_credit) AS s
    ), next AS MATERIALIZED (
        SELECT l.* FROM line l, shared s WHERE l.place <= CASE l.lane WHEN 'fresh' THEN s.fresh ELSE s.retry END
    ), cells AS (
        SELECT n.queue, n.lane, n.priority, count(*)::int AS number, min(n.available_at) AS first_at FROM next n
        WHERE n.queue = ANY (own) AND NOT n.is_alone GROUP BY n.queue, n.lane, n.priority
    )
    SELECT array_agg(c.queue ORDER BY c.lane, c.priority), array_agg(c.lane ORDER BY c.lane, c.priority),
           array_agg(c.priority ORDER BY c.lane, c.priority), array_agg(c.number ORDER BY c.lane, c.priority),
           array_agg(c.first_at ORDER BY c.lane, c.priority),
           (SELECT array_agg(n.task_id) FROM next n WHERE n.queue = ANY (own) AND NOT n.is_alone),
           (SELECT due.fresh + due.retry > s.fresh + s.retry FROM due, shared s),
           EXISTS (SELECT 1 FROM next n WHERE n.queue <> ALL (own)),
           (SELECT s.credit FROM shared s),
           (SELECT array_agg(n.task_id) FROM next n WHERE n.is_alone), (SELECT due.fresh + due.retry FROM due)
    INTO of_queues, of_lanes, of_priorities, numbers, firsts, turns, has_more, passed, credit, alone, seen FROM cells c;
    IF pg_stat_get_xact_tuples_returned('tasks_due'::regclass) - before > seen + walked_over_many() THEN
        PERFORM remember_floors(considered, floors, moment);
    END IF;
    IF alone IS NOT NULL THEN
        UPDATE tasks t SET turn_at = moment FROM (
            SELECT task_id FROM tasks WHERE task_id = ANY (alone) FOR NO KEY UPDATE SKIP LOCKED
        ) AS free
        WHERE t.task_id = free.task_id AND (t.turn_at IS NULL OR t.turn_at < moment - interval '5 min');
    END IF;
END $$;

-- Each pick adds the retry lane's share to the credit; at 100 the pick is a retry's and costs 100. A lane that has
-- nothing due gives its share away and earns no credit meanwhile.

CREATE FUNCTION share_between_lanes(
    wanted int, fresh_due int, retry_due int, share int, INOUT credit int, OUT fresh int, OUT retry int
) LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    fresh := 0;
    retry := 0;
    WHILE fresh + retry < wanted AND fresh < fresh_due AND retry < retry_due LOOP
        credit := credit + share;
        IF credit >= 100 THEN
            credit := credit - 100;
            retry := retry + 1;
        ELSE
            fresh := fresh + 1;
        END IF;
    END LOOP;
    IF fresh < fresh_due THEN
        fresh := least(fresh_due, wanted - retry);
    ELSE
        retry := least(retry_due, wanted - fresh);
    END IF;
END $$;

-- A provider's other queues that somebody serves who has a place free.

CREATE FUNCTION others_with_a_place(of_provider text, own text[], heard_within_seconds float)
RETURNS text[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT q.queue::text FROM queues q
        WHERE q.provider = of_provider AND q.queue <> ALL (own) AND EXISTS (
            SELECT 1 FROM workers w
            WHERE w.state = 'active' AND q.queue = ANY (w.queues)
              AND w.heartbeat_at > clock_timestamp() - make_interval(secs => heard_within_seconds)
              AND has_a_place(w, q.queue)));
END $$;

-- Those that are due and not chosen yet, as far as `at_most` of each queue, lane and priority; with those that must run
-- alone only where they stand in line, and while a slot is left to them. Nothing may be sorted here, so that only the
-- index serves that has them in order.

CREATE FUNCTION waiting_in_line(
    of_queues text[], at_most int, without uuid[], with_alone boolean, moment timestamptz, floors jsonb DEFAULT NULL
)
RETURNS TABLE (task_id uuid, queue text, lane text, priority int, available_at timestamptz, is_alone boolean)
LANGUAGE plpgsql STABLE ROWS 20 SET enable_sort = off AS $$
#variable_conflict use_column
BEGIN
    RETURN QUERY
    SELECT due.task_id, of.queue, lanes.lane, level.priority, due.available_at, due.is_alone
    FROM unnest(of_queues) AS of(queue)
    CROSS JOIN (VALUES ('fresh'), ('retry')) AS lanes(lane)
    CROSS JOIN generate_series(0, 9) AS level(priority)
    CROSS JOIN LATERAL (
        SELECT t.task_id, t.available_at, runs_alone(t.suspicion) AS is_alone FROM tasks t
        WHERE t.queue = of.queue AND t.lane = lanes.lane AND t.priority = level.priority
          AND NOT t.job_open AND t.task_id <> ALL (without) AND :due_at(moment)
          AND t.available_at >= :floor(floors, of.queue, lanes.lane, level.priority)
          AND (t.group_id IS NULL OR NOT :is_stopped(t))
          AND (NOT runs_alone(t.suspicion) OR (
              with_alone
              AND coalesce(t.turn_at NOT BETWEEN moment - interval '5 min' AND moment - interval '30 s', true)))
        ORDER BY t.available_at LIMIT at_most
    ) AS due;
END $$;

-- Locks so many of each queue, lane and priority, in order, from the first that was seen.

CREATE FUNCTION lock_in_order(
    of_queues text[], of_lanes text[], of_priorities int[], numbers int[], firsts timestamptz[], without uuid[],
    moment timestamptz
)
RETURNS uuid[] LANGUAGE plpgsql SET enable_sort = off AS $$
BEGIN
    IF of_queues IS NULL THEN RETURN '{}'; END IF;
    RETURN ARRAY(
        SELECT due.task_id
        FROM unnest(of_queues, of_lanes, of_priorities, numbers, firsts)
             AS cell(queue, lane, priority, number, first_at)
        CROSS JOIN LATERAL (
            SELECT t.task_id FROM tasks t
            WHERE t.queue = cell.queue AND t.lane = cell.lane AND t.priority = cell.priority
              AND NOT t.job_open AND NOT runs_alone(t.suspicion) AND t.task_id <> ALL (without) AND :due_at(moment)
              AND t.available_at >= cell.first_at
              AND (t.group_id IS NULL OR NOT :is_stopped(t))
            ORDER BY t.available_at, t.task_id LIMIT cell.number FOR NO KEY UPDATE SKIP LOCKED
        ) AS due);
END $$;
