-- Concurrency keys: of the tasks of one provider and actor that have the same key, so many may run at once. A key is
-- taken by who runs and by who has an open job. Whoever would start a task, and finds its key full, parks it (held, for
-- the reason `key`), and whoever makes room lets the next go on. Both have locked the provider: else one could look
-- before the other has written, and a task would stay parked beside a key that nobody has. See docs/decisions/0042.

CREATE FUNCTION key_taken(of_provider text, of_actor text, of_key text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM tasks t
        WHERE t.provider = of_provider AND t.actor = of_actor AND t.concurrency_key = of_key
          AND (t.status = 'running' OR t.job_open));
END $$;

-- How many more of a key may run; null where the actor has no limit any more.
CREATE FUNCTION key_room(of_provider text, of_actor text, of_key text) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT greatest(0, a.concurrency_limit - key_taken(of_provider, of_actor, of_key)) FROM actors a
        WHERE a.name = of_actor AND a.concurrency_limit IS NOT NULL);
END $$;

-- Those of a key that may start and are not parked, as far as `at_most`: with a key's room it makes no difference how
-- many more there are.
CREATE FUNCTION key_waiting(
    of_provider text, of_actor text, of_key text, moment timestamptz, at_most bigint
) RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM (
            SELECT 1 FROM tasks t
            WHERE t.provider = of_provider AND t.actor = of_actor AND t.concurrency_key = of_key
              AND t.held = '{}' AND NOT t.job_open AND :due_at(moment)
            LIMIT at_most
        ) AS waiting);
END $$;

-- How many of these tasks, which are about to run, will take a key.
CREATE FUNCTION key_chosen(of_provider text, of_actor text, of_key text, chosen uuid[])
RETURNS bigint LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT count(*) FROM unnest(chosen) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        WHERE t.provider = of_provider AND t.actor = of_actor AND t.concurrency_key = of_key AND NOT t.job_open);
END $$;

-- Of tasks that are about to be claimed, those for which their keys have no room. They go by priority, then by age. Who
-- only goes on waiting for an open job has its place. Those that were chosen `before` do not run yet, and have theirs.
CREATE FUNCTION beyond_room(chosen uuid[], before uuid[], moment timestamptz)
RETURNS uuid[] LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        WITH keyed AS (
            SELECT t.task_id, t.provider, t.actor, t.concurrency_key, row_number() OVER (
                       PARTITION BY t.provider, t.actor, t.concurrency_key
                       ORDER BY t.priority, t.available_at, t.task_id) AS place
            FROM unnest(chosen) AS one(task_id)
            CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
            WHERE t.concurrency_key IS NOT NULL AND NOT t.job_open AND :due_at(moment)
        ), scope AS (
            SELECT k.provider, k.actor, k.concurrency_key, key_room(k.provider, k.actor, k.concurrency_key)
                   - key_chosen(k.provider, k.actor, k.concurrency_key, before) AS room
            FROM keyed k WHERE k.place = 1
        )
        SELECT array_agg(k.task_id) FROM keyed k JOIN scope s USING (provider, actor, concurrency_key)
        WHERE k.place > s.room);
END $$;

-- Parks what waits of the keys of these tasks, as far as they have no room for it: not only who was about to start, or
-- all the others would come to the front one after another. The provider is locked; what somebody else has locked is
-- left for the next time. Those that are `chosen` are about to run, and have taken their places. Returns those that are
-- parked now.
CREATE FUNCTION park_keys_of(crowded uuid[], chosen uuid[], moment timestamptz) RETURNS uuid[] LANGUAGE plpgsql AS $$
DECLARE
    at_once  int := 500;
    found    uuid[];
BEGIN
    found := ARRAY(
        SELECT surplus.task_id FROM (
            SELECT DISTINCT t.provider, t.actor, t.concurrency_key FROM unnest(crowded) AS one(task_id)
            CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        ) AS s
        CROSS JOIN LATERAL (
            SELECT key_room(s.provider, s.actor, s.concurrency_key)
                   - key_chosen(s.provider, s.actor, s.concurrency_key, chosen) AS places
        ) AS room
        CROSS JOIN LATERAL (
            SELECT t.task_id FROM tasks t
            WHERE t.provider = s.provider AND t.actor = s.actor AND t.concurrency_key = s.concurrency_key
              AND t.held = '{}' AND NOT t.job_open AND t.task_id <> ALL (chosen) AND :due_at(moment)
            ORDER BY t.priority, t.available_at, t.task_id
            OFFSET greatest(0, room.places) LIMIT at_once
        ) AS surplus
        WHERE room.places IS NOT NULL);
    found := ARRAY(SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (found) FOR NO KEY UPDATE SKIP LOCKED);
    RETURN hold_tasks(found, 'key');
END $$;

-- Lets go on what is parked of these keys, as far as they have room: by priority, then by age. Who may start and is not
-- parked goes first. Nobody is waited for, because callers have locked tasks: a provider or a parked task that somebody
-- else has locked is passed over, and `hindered` says that it was so.
CREATE FUNCTION release_keys(
    of_providers text[], of_actors text[], of_keys text[], at_most int, OUT released int, OUT hindered boolean
) LANGUAGE plpgsql AS $$
DECLARE
    locked text[];
    next   uuid[];
    free   uuid[];
    moment timestamptz;
BEGIN
    locked := ARRAY(
        SELECT p.name FROM providers p WHERE p.name = ANY (of_providers) FOR NO KEY UPDATE SKIP LOCKED);
    moment := clock_timestamp();
    next := ARRAY(
        SELECT parked.task_id FROM unnest(of_providers, of_actors, of_keys) AS s(provider, actor, key)
        CROSS JOIN LATERAL (SELECT key_room(s.provider, s.actor, s.key) AS places) AS room
        CROSS JOIN LATERAL (
            SELECT t.task_id FROM tasks t
            WHERE t.provider = s.provider AND t.actor = s.actor AND t.concurrency_key = s.key AND t.held = '{key}'
            ORDER BY t.priority, t.due_at, t.task_id
            LIMIT coalesce(room.places - key_waiting(s.provider, s.actor, s.key, moment, room.places), at_most)
        ) AS parked
        WHERE s.provider = ANY (locked));
    free := ARRAY(SELECT t.task_id FROM tasks t WHERE t.task_id = ANY (next) FOR NO KEY UPDATE SKIP LOCKED);
    IF cardinality(free) > 0 THEN
        PERFORM release_tasks(free, 'key');
    END IF;
    released := cardinality(free);
    hindered := cardinality(free) < cardinality(next) OR EXISTS (
        SELECT 1 FROM unnest(of_providers) AS name WHERE name <> ALL (locked));
END $$;

-- Lets go on what may, now that these tasks have left their keys, or may have. Where somebody is in the way, a janitor
-- is called, who has locked nothing.
CREATE FUNCTION release_keys_of(moved uuid[]) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    of_providers text[];
    of_actors    text[];
    of_keys      text[];
    hindered     boolean;
BEGIN
    SELECT array_agg(s.provider), array_agg(s.actor), array_agg(s.concurrency_key)
    INTO of_providers, of_actors, of_keys FROM (
        SELECT DISTINCT t.provider, t.actor, t.concurrency_key FROM unnest(moved) AS one(task_id)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = one.task_id OFFSET 0) AS t
        WHERE t.concurrency_key IS NOT NULL
    ) AS s;
    IF of_keys IS NULL THEN RETURN; END IF;
    SELECT r.hindered INTO hindered FROM release_keys(of_providers, of_actors, of_keys, 500) AS r;
    IF hindered THEN
        PERFORM pg_notify('windlass_concurrency', name) FROM (SELECT DISTINCT unnest(of_providers) AS name) AS called;
    END IF;
END $$;

-- After moves of tasks with concurrency keys. A task that is waiting again takes nothing, and one that was buried
-- because of a parent had nothing: such moves are written while other tasks may still be waited for.
CREATE FUNCTION release_keys_after(moves jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM release_keys_of(ARRAY(
        SELECT t.task_id FROM jsonb_array_elements(moves) AS m(move)
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = (m.move ->> 'task_id')::uuid OFFSET 0) AS t
        WHERE (m.move ->> 'concerns')::int & :concern_of_key <> 0 AND m.move ->> 'move' NOT IN ('submit', 'revive')
          AND NOT (m.move ->> 'move' = 'bury' AND t.error ->> 'type' IS NOT DISTINCT FROM 'DependencyFailed')));
END $$;

-- Looks through a page of the keys that have parked tasks, of all providers or of one, and lets those go on for which
-- there is room. A provider that is named is locked before anybody looks: whoever called may have met somebody who was
-- just parking there. Else only where something is found. Idle it is one probe of an index.
CREATE FUNCTION recheck_keys(
    only_provider text, after text[], keys_at_once int, at_most int,
    OUT reached text[], OUT released int, OUT hindered boolean
) LANGUAGE plpgsql AS $$
DECLARE
    of_providers text[];
    of_actors    text[];
    of_keys      text[];
    last         text[];
BEGIN
    released := 0;
    hindered := false;
    IF only_provider IS NOT NULL THEN
        PERFORM 1 FROM providers p WHERE p.name = only_provider FOR NO KEY UPDATE;
        after := coalesce(after, ARRAY[only_provider, '', '']);
    END IF;
    WITH RECURSIVE scope AS (
        (SELECT t.provider, t.actor, t.concurrency_key FROM tasks t
         WHERE t.concurrency_key IS NOT NULL AND t.held = '{key}'
           AND (after IS NULL OR (t.provider, t.actor, t.concurrency_key) > (after[1], after[2], after[3]))
         ORDER BY t.provider, t.actor, t.concurrency_key LIMIT 1)
        UNION ALL
        SELECT another.* FROM scope s CROSS JOIN LATERAL (
            SELECT t.provider, t.actor, t.concurrency_key FROM tasks t
            WHERE t.concurrency_key IS NOT NULL AND t.held = '{key}'
              AND (t.provider, t.actor, t.concurrency_key) > (s.provider, s.actor, s.concurrency_key)
            ORDER BY t.provider, t.actor, t.concurrency_key LIMIT 1
        ) AS another
    ), page AS (
        SELECT s.*, row_number() OVER () AS place FROM (SELECT * FROM scope LIMIT keys_at_once) AS s
        WHERE only_provider IS NULL OR s.provider = only_provider
    ), roomy AS (
        SELECT p.* FROM page p
        CROSS JOIN LATERAL (SELECT key_room(p.provider, p.actor, p.concurrency_key) AS places) AS room
        WHERE coalesce(room.places > key_waiting(
            p.provider, p.actor, p.concurrency_key, clock_timestamp(), room.places), true)
    )
    SELECT (SELECT ARRAY[p.provider, p.actor, p.concurrency_key] FROM page p WHERE p.place = keys_at_once),
           array_agg(r.provider), array_agg(r.actor), array_agg(r.concurrency_key)
    INTO last, of_providers, of_actors, of_keys FROM roomy r;
    reached := last;
    IF of_keys IS NULL THEN RETURN; END IF;
    PERFORM 1 FROM providers p WHERE p.name = ANY (of_providers) ORDER BY p.name FOR NO KEY UPDATE;
    SELECT r.released, r.hindered INTO released, hindered
    FROM release_keys(of_providers, of_actors, of_keys, at_most) AS r;
END $$;

-- What stands between a waiting task and its key: the limit, how many have it, and how many that may start go before.
CREATE FUNCTION key_facts(
    wanted uuid, moment timestamptz, OUT most int, OUT taken bigint, OUT before bigint
) LANGUAGE plpgsql STABLE AS $$
DECLARE
    own tasks;
BEGIN
    SELECT * INTO own FROM tasks WHERE task_id = wanted;
    SELECT a.concurrency_limit INTO most FROM actors a WHERE a.name = own.actor;
    taken := key_taken(own.provider, own.actor, own.concurrency_key);
    before := (
        SELECT count(*) FROM (
            SELECT 1 FROM tasks t
            WHERE t.provider = own.provider AND t.actor = own.actor AND t.concurrency_key = own.concurrency_key
              AND t.held = '{}' AND NOT t.job_open AND :due_at(moment)
              AND (t.priority, t.available_at, t.task_id) < (own.priority, own.available_at, own.task_id)
            LIMIT most
        ) AS earlier);
END $$;
