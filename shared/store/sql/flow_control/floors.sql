-- Where probes begin. While somebody keeps a snapshot open, as a dump does, the entries of tasks that have started or
-- ended since stay in the indexes, and whoever begins at the beginning walks over all of them. So a probe that walked
-- over many remembers, for its connection, where the first stands that lives, and the next ones begin there.

-- Of what waits this is a guess for a second: who moves backwards, or comes late with an old time, stands before it.
-- So a second later the probe begins at the beginning again; a claim that finds nobody does so at once; and a look that
-- began at a floor says when it has to be repeated (`next_moment`). A quarter of a second is left to those who are
-- being submitted just now.

CREATE FUNCTION floors_of(of_queues text[], moment timestamptz) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT jsonb_object_agg(one.key, one.value) FROM jsonb_each(current_setting('windlass.floors')::jsonb) AS one
        WHERE one.key = ANY (of_queues)
          -- Of a clock that was put back, nothing counts that it said before.
          AND (one.value ->> 'until')::timestamptz > moment
          AND (one.value ->> 'until')::timestamptz <= moment + interval '1 s');
END $$;

-- Walks once more from where the probe began: what nobody needs any longer was marked by it, and is passed over now. If
-- there is still as much to walk over, it is remembered. No living task that waits stands before its floor, whether it
-- may start or not.

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

-- Of what runs it is certain, so that whoever keeps a limit may count by it. `since` is the oldest transaction that was
-- under way when it was remembered: who runs and was claimed by an earlier one was seen then, and is among those that
-- are `known`; all others are claimed by it or by a later one. As in `due_counts` nothing may be sorted, so that each
-- count reads its own index.

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

-- By a worker: all that it runs, or those of some queues alone.

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

-- A worker's places, by kind: those on threads and those on its loop, with the queues that they serve and how many of
-- them are taken. A worker of one kind is counted as a whole.

CREATE FUNCTION places_of(w workers) RETURNS TABLE (queues text[], capacity int, taken bigint)
LANGUAGE plpgsql STABLE AS $$
DECLARE
    on_threads text[] := ARRAY(SELECT q FROM unnest(w.queues) AS q WHERE q <> ALL (w.async_queues));
BEGIN
    IF w.async_queues = '{}' OR on_threads = '{}' THEN
        RETURN QUERY SELECT w.queues, w.capacity, running_by(w.worker_id);
        RETURN;
    END IF;
    RETURN QUERY
    SELECT kind.queues, kind.capacity, running_by(w.worker_id, kind.queues)
    FROM (VALUES (on_threads, w.capacity - w.async_capacity), (w.async_queues, w.async_capacity))
         AS kind(queues, capacity);
END $$;

CREATE FUNCTION has_a_place(w workers, of_queue text) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN EXISTS (SELECT 1 FROM places_of(w) AS p WHERE of_queue = ANY (p.queues) AND p.capacity > p.taken);
END $$;

-- Who is known to have run. OFFSET 0: each is found by its id.

CREATE FUNCTION still_running(kept jsonb, of_queues text[] DEFAULT NULL) RETURNS uuid[]
LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN ARRAY(
        SELECT t.task_id FROM jsonb_array_elements_text(kept -> 'known') AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id::uuid OFFSET 0) AS t
        WHERE t.status = 'running' AND t.claim_xid < (kept ->> 'since')::xid8
          AND (of_queues IS NULL OR t.queue = ANY (of_queues)));
END $$;

-- Walks once more, as `remember_floors` does and for the same reason. The snapshot is the caller's own.

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
