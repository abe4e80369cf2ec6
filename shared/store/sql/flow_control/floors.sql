-- Floors: where a look at the tasks that wait begins, and how running tasks are counted, while a snapshot is open.
--
-- A dump keeps a snapshot open for an hour. Until it ends, Postgres keeps the index entries of every task that has
-- started or ended since, and a look that begins at the start of the index reads all of them. After 200,000 tasks, a
-- look and a claim cost 32 times as much CPU without this file, and as much as at first with it (bench part
-- `snapshot`).
--
-- A look that has read more than 1,000 entries for nothing remembers, in a setting of its connection, the first entry
-- that lives, and the looks of the next second begin there. After that second a look begins at the start again,
-- because a task may have moved to an earlier place. A claim that finds nothing begins at the start at once, and a
-- look that began at a floor says when it must be repeated (`next_moment`). The last 250 ms are never left out: a
-- task that is being submitted may still come there. Without an open snapshot nothing is ever remembered.

CREATE FUNCTION floors_of(of_queues text[], moment timestamptz) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT jsonb_object_agg(one.key, one.value) FROM jsonb_each(current_setting('windlass.floors')::jsonb) AS one
        WHERE one.key = ANY (of_queues)
          -- Of a clock that was put back, nothing counts that it said before.
          AND (one.value ->> 'until')::timestamptz > moment
          AND (one.value ->> 'until')::timestamptz <= moment + interval '1 s');
END $$;

-- Looks once more from where the last look began. Without an open snapshot the last look has marked the dead entries,
-- and this one skips them. Only if it still reads many does it remember floors. No waiting task is older than its
-- floor.

CREATE FUNCTION remember_floors(of_queues text[], floors jsonb, moment timestamptz) RETURNS void
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    before   bigint := pg_stat_get_xact_tuples_returned('tasks_due'::regclass);
    youngest timestamptz := moment - interval '250 ms';
    found    jsonb;
BEGIN
    SELECT jsonb_object_agg(of.queue, its.cells || jsonb_build_object(
               'until', coalesce((floors -> of.queue ->> 'until')::timestamptz, moment + interval '1 s'),
               'else', youngest))
    INTO found
    FROM unnest(of_queues) AS of(queue)
    CROSS JOIN LATERAL (
        SELECT coalesce(
                   jsonb_object_agg(lanes.lane || level.priority, least(first.available_at, youngest)), '{}') AS cells
        FROM (VALUES ('fresh'), ('retry')) AS lanes(lane)
        CROSS JOIN generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT t.available_at FROM tasks t
            WHERE t.queue = of.queue AND t.lane = lanes.lane AND t.priority = level.priority
              AND t.status IN :sources_of_claim AND t.available_at <= moment
              AND t.available_at >= :floor(floors, of.queue, lanes.lane, level.priority)
            ORDER BY t.available_at LIMIT 1
        ) AS first
    ) AS its;
    IF pg_stat_get_xact_tuples_returned('tasks_due'::regclass) - before > walked_over_many() THEN
        PERFORM set_config('windlass.floors',
            (coalesce(nullif(current_setting('windlass.floors', true), '')::jsonb, '{}') || found)::text, false);
    END IF;
END $$;

CREATE FUNCTION walked_over_many() RETURNS int LANGUAGE sql IMMUTABLE AS $$ SELECT 1000 $$;

-- Counts of running tasks must be exact, because limits depend on them. `since` is the oldest transaction that was
-- open when the count was remembered. A running task that an earlier transaction claimed was seen then, and is in
-- `known`. All others were claimed by `since` or later, and are counted from the index, which is in the order of
-- claims. Nothing may be sorted here, so that the planner takes that index.

CREATE FUNCTION running_at(of_provider text) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    kept   jsonb := CASE WHEN current_setting('windlass.running', true) <> ''
                          THEN current_setting('windlass.running')::jsonb -> ('provider ' || of_provider) END;
    before bigint := pg_stat_get_xact_tuples_returned('tasks_running'::regclass);
    later  bigint;
BEGIN
    later := (
        SELECT count(*) FROM (
            SELECT 1 FROM tasks t
            WHERE t.provider = of_provider AND t.status = 'running'
              AND t.claim_xid >= coalesce((kept ->> 'since')::xid8, '0')
            ORDER BY t.claim_xid OFFSET 0
        ) AS one);
    IF pg_stat_get_xact_tuples_returned('tasks_running'::regclass) - before > later + walked_over_many() THEN
        PERFORM remember_running('provider', of_provider, kept);
    END IF;
    RETURN later + CASE WHEN kept IS NULL THEN 0 ELSE cardinality(still_running(kept)) END;
END $$;

-- The same of a worker: all that it runs, or only the tasks of some queues.

CREATE FUNCTION running_by(of_worker text, of_queues text[] DEFAULT NULL) RETURNS bigint
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    kept   jsonb := CASE WHEN current_setting('windlass.running', true) <> ''
                          THEN current_setting('windlass.running')::jsonb -> ('worker ' || of_worker) END;
    before bigint := pg_stat_get_xact_tuples_returned('tasks_of_worker'::regclass);
    later  bigint;
    theirs bigint;
BEGIN
    SELECT count(*), count(*) FILTER (WHERE of_queues IS NULL OR one.queue = ANY (of_queues)) INTO later, theirs FROM (
        SELECT t.queue FROM tasks t
        WHERE t.worker_id = of_worker AND t.status = 'running'
          AND t.claim_xid >= coalesce((kept ->> 'since')::xid8, '0')
        ORDER BY t.claim_xid OFFSET 0
    ) AS one;
    IF pg_stat_get_xact_tuples_returned('tasks_of_worker'::regclass) - before > later + walked_over_many() THEN
        PERFORM remember_running('worker', of_worker, kept);
    END IF;
    RETURN theirs + CASE WHEN kept IS NULL THEN 0 ELSE cardinality(still_running(kept, of_queues)) END;
END $$;

-- Which of the known tasks still run. OFFSET 0: each is found by its id.

CREATE FUNCTION still_running(kept jsonb, of_queues text[] DEFAULT NULL) RETURNS uuid[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT t.task_id FROM jsonb_array_elements_text(kept -> 'known') AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id::uuid OFFSET 0) AS t
        WHERE t.status = 'running' AND t.claim_xid < (kept ->> 'since')::xid8
          AND (of_queues IS NULL OR t.queue = ANY (of_queues)));
END $$;

-- Looks once more, as `remember_floors` does and for the same reason, in the caller's snapshot.

CREATE FUNCTION remember_running(kind text, name text, kept jsonb) RETURNS void
LANGUAGE plpgsql STABLE SET enable_sort = off AS $$
DECLARE
    since   xid8 := pg_snapshot_xmin(pg_current_snapshot());
    indexed regclass := CASE kind WHEN 'worker' THEN 'tasks_of_worker' ELSE 'tasks_running' END;
    before  bigint := pg_stat_get_xact_tuples_returned(indexed);
    known   uuid[];
BEGIN
    known := ARRAY(
        (SELECT t.task_id FROM tasks t
         WHERE kind = 'provider' AND t.provider = name AND t.status = 'running' AND t.claim_xid < since
           AND t.claim_xid >= coalesce((kept ->> 'since')::xid8, '0')
         ORDER BY t.claim_xid OFFSET 0)
        UNION ALL
        (SELECT t.task_id FROM tasks t
         WHERE kind = 'worker' AND t.worker_id = name AND t.status = 'running' AND t.claim_xid < since
           AND t.claim_xid >= coalesce((kept ->> 'since')::xid8, '0')
         ORDER BY t.claim_xid OFFSET 0));
    -- A long list would take as long to go through as what it saves.
    IF pg_stat_get_xact_tuples_returned(indexed) - before > walked_over_many() AND cardinality(known) < 1000 THEN
        IF kept IS NOT NULL THEN
            known := known || still_running(kept);
        END IF;
        PERFORM set_config('windlass.running', jsonb_set(
            coalesce(nullif(current_setting('windlass.running', true), '')::jsonb, '{}'), ARRAY[kind || ' ' || name],
            jsonb_build_object('since', since::text, 'known', to_jsonb(known)))::text, false);
    END IF;
END $$;
