-- What a task gets whose payload refers to results of others: cut out here, from committed rows, by whoever claimed it.
-- Results of completed tasks do not change, so it can be told at any time, and is stored nowhere. Where something is
-- missing, or all of it is too large, the pointer into the payload says where.

CREATE FUNCTION resolve_input(wanted uuid, at_most int, OUT input jsonb, OUT pointer text, OUT problem text)
LANGUAGE plpgsql STABLE AS $$
BEGIN
    SELECT i.input, i.pointer, i.problem INTO input, pointer, problem
    FROM resolve_inputs(ARRAY[wanted], at_most, at_most) AS i;
END $$;

-- The same for many, until there is so much of it that the others had better ask for themselves. The tasks of a
-- `for_each` come together, and their list is looked up once. Of a task only what is needed goes from function to
-- function: a whole row would be copied for each part of its payload.

CREATE FUNCTION resolve_inputs(wanted uuid[], at_most int, at_once int)
RETURNS TABLE (task_id uuid, input jsonb, pointer text, problem text) LANGUAGE plpgsql STABLE AS $$
#variable_conflict use_column
DECLARE
    one     record;
    node    text;
    of_node text;
    list    jsonb;
    unread  bigint;
    so_far  bigint := 0;
    read    bigint := 0;
BEGIN
    FOR one IN
        SELECT t.* FROM unnest(wanted) WITH ORDINALITY AS asked(task_id, place)
        CROSS JOIN LATERAL (
            SELECT tasks.task_id, tasks.payload, tasks.workflow_id, tasks.workflow_key, tasks.depends_on
            FROM tasks WHERE tasks.task_id = asked.task_id OFFSET 0
        ) AS t ORDER BY asked.place
    LOOP
        node := one.workflow_id || ' ' || key_of_barrier(one.workflow_key);
        IF node IS DISTINCT FROM of_node THEN
            of_node := node;
            -- Joined with nothing it is unpacked once, and not for each element.
            list := CASE WHEN node IS NOT NULL THEN list_of(one.workflow_id, one.workflow_key) || '[]' END;
        END IF;
        task_id := one.task_id;
        pointer := NULL;
        problem := NULL;
        -- What cannot be resolved counts as a twentieth of what may be read: the second one ends the loop.
        unread := most_read(at_most) - most_read(at_most) / 20;
        BEGIN
            SELECT r.value, r.unread INTO input, unread
            FROM resolved(one.payload, '', one.workflow_id, one.workflow_key, one.depends_on, at_most, list, at_most,
                          most_read(at_most)) AS r;
            IF octet_length(input::text) > at_most THEN
                input := NULL;
                pointer := '';
                problem := too_large_with_results(at_most);
            END IF;
        EXCEPTION WHEN SQLSTATE 'WL422' THEN
            input := NULL;
            GET STACKED DIAGNOSTICS problem = MESSAGE_TEXT, pointer = PG_EXCEPTION_DETAIL;
        END;
        RETURN NEXT;
        so_far := so_far + coalesce(pg_column_size(input), 0);
        read := read + most_read(at_most) - unread;
        EXIT WHEN so_far > at_once OR read > most_read(at_most) / 20;
    END LOOP;
END $$;

CREATE FUNCTION too_large_with_results(at_most int) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT 'with the results that it refers to, the payload has more than ' || at_most || ' bytes'
$$;

-- Bytes of results that the references of one payload may read, also where they take nothing: about two seconds.
CREATE FUNCTION most_read(at_most int) RETURNS bigint LANGUAGE sql IMMUTABLE AS $$
    SELECT 200 * at_most::bigint
$$;

-- A part of a payload with every reference in it replaced. `place` is where the part stands, `list` the one that the
-- task has an element of, if the caller has it at hand, `room` how many bytes of results may still come, and `unread`
-- how many may still be read: each value is measured before it is added to the others, so that a small payload with
-- many references never becomes a large one, nor takes longer than a statement may.

CREATE FUNCTION resolved(
    part jsonb, place text, of_workflow text, own_key text, parents uuid[], at_most int, list jsonb,
    INOUT room bigint, INOUT unread bigint, OUT value jsonb
) LANGUAGE plpgsql STABLE AS $$
DECLARE
    one    record;
    piece  jsonb;
    pieces jsonb[] := '{}';
    names  text[] := '{}';
BEGIN
    IF jsonb_typeof(part) = 'array' THEN
        FOR one IN
            SELECT e.item, e.number - 1 AS number FROM jsonb_array_elements(part) WITH ORDINALITY AS e(item, number)
        LOOP
            piece := one.item;
            IF jsonb_typeof(piece) IN ('object', 'array') THEN
                SELECT r.room, r.unread, r.value INTO room, unread, piece
                FROM resolved(
                    piece, place || '/' || one.number, of_workflow, own_key, parents, at_most, list, room, unread) AS r;
            END IF;
            pieces := array_append(pieces, piece);
        END LOOP;
        value := to_jsonb(pieces);
        RETURN;
    ELSIF jsonb_typeof(part) <> 'object' THEN
        value := part;
        RETURN;
    ELSIF part ? '$literal' THEN
        value := part -> '$literal';
        RETURN;
    ELSIF part ? '$text' THEN
        SELECT r.room, r.unread, r.value INTO room, unread, piece
        FROM resolved(
            part -> '$text', place || '/$text', of_workflow, own_key, parents, at_most, list, room, unread) AS r;
        value := (SELECT to_jsonb(coalesce(string_agg(e.item #>> '{}', '' ORDER BY e.number), ''))
                  FROM jsonb_array_elements(piece) WITH ORDINALITY AS e(item, number));
        RETURN;
    ELSIF part ? '$index' THEN
        value := to_jsonb(number_of(own_key));
        RETURN;
    ELSIF part ? '$from' THEN
        SELECT r.unread, r.value INTO unread, value
        FROM referred(
            of_workflow, own_key, parents, part ->> '$from', coalesce(part ->> 'path', ''), at_most, place, unread
        ) AS r;
    ELSIF part ? '$item' THEN
        SELECT r.unread, r.value INTO unread, value
        FROM read_at(list -> number_of(own_key), coalesce(part ->> 'path', ''), unread) AS r;
    ELSE
        -- Plain values are taken as they are, without a call for each.
        FOR one IN
            SELECT e.name, e.item FROM jsonb_each(part) AS e(name, item)
            WHERE jsonb_typeof(e.item) IN ('object', 'array')
        LOOP
            SELECT r.room, r.unread, r.value INTO room, unread, piece
            FROM resolved(
                one.item, place || '/' || replace(replace(one.name, '~', '~0'), '/', '~1'), of_workflow, own_key,
                parents, at_most, list, room, unread) AS r;
            names := array_append(names, one.name);
            pieces := array_append(pieces, piece);
        END LOOP;
        value := part || (
            SELECT coalesce(jsonb_object_agg(u.name, u.piece), '{}') FROM unnest(names, pieces) AS u(name, piece));
        RETURN;
    END IF;
    IF unread < 0 THEN
        RAISE EXCEPTION '%', 'the references up to here read more than ' || most_read(at_most) || ' bytes of results'
        USING ERRCODE = 'WL422', DETAIL = place;
    END IF;
    value := coalesce(value, part -> 'default');
    IF value IS NULL THEN
        RAISE EXCEPTION '%', CASE WHEN part ? '$from' THEN (part ->> '$from') || ' has nothing at '
            || coalesce(quote_literal(part ->> 'path'), 'all') ELSE 'the element has nothing at '
            || coalesce(quote_literal(part ->> 'path'), 'all') END USING ERRCODE = 'WL422', DETAIL = place;
    END IF;
    room := room - octet_length(value::text);
    IF room < 0 THEN
        RAISE EXCEPTION '%', too_large_with_results(at_most) USING ERRCODE = 'WL422', DETAIL = place;
    END IF;
END $$;

-- The part of a value that a JSON Pointer means, or null where there is none, and how much may still be read: each step
-- copies all that is below it.

CREATE FUNCTION read_at(INOUT value jsonb, path text, INOUT unread bigint) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    name text;
BEGIN
    IF value IS NULL OR path = '' THEN RETURN; END IF;
    value := value #> '{}'; -- unpacked once, as its size is only known then
    FOREACH name IN ARRAY string_to_array(substr(path, 2), '/') LOOP
        name := replace(replace(name, '~1', '/'), '~0', '~');
        unread := unread - pg_column_size(value);
        value := CASE jsonb_typeof(value) WHEN 'object' THEN value -> name
                      WHEN 'array' THEN CASE WHEN name ~ '^(0|[1-9]\d{0,8})$' THEN value -> name::int END END;
        EXIT WHEN value IS NULL;
    END LOOP;
END $$;

CREATE FUNCTION pointed(value jsonb, path text) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
    SELECT r.value FROM read_at(value, path, 0) AS r
$$;

-- The result of a completed task, or a list of the results of a barrier's members, with null for a member without one.
-- Null if there is no result.

CREATE FUNCTION result_of(wanted uuid, is_barrier boolean) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    IF is_barrier THEN
        RETURN (
            SELECT coalesce(jsonb_agg(coalesce(c.result, 'null') ORDER BY number), '[]')
            FROM barriers b CROSS JOIN LATERAL generate_series(0, b.members - 1) AS number
            LEFT JOIN tasks c ON c.workflow_id = b.group_id::text AND c.workflow_key = b.key || '[' || number || ']'
            WHERE b.barrier_id = wanted AND b.members IS NOT NULL);
    END IF;
    RETURN (SELECT coalesce(p.result, 'null') FROM tasks p WHERE p.task_id = wanted AND p.status = 'completed');
END $$;

-- What a task's reference means: the other is named by its key in the workflow, or by its id.

CREATE FUNCTION referred(
    of_workflow text, own_key text, parents uuid[], name text, path text, at_most int, place text,
    INOUT unread bigint, OUT value jsonb
) LANGUAGE plpgsql STABLE AS $$
DECLARE
    found   uuid;
    barrier barriers;
    size    bigint;
BEGIN
    IF own_key IS NOT NULL THEN
        SELECT p.task_id INTO found FROM tasks p WHERE p.workflow_id = of_workflow AND p.workflow_key = name;
        IF found IS NULL THEN
            SELECT * INTO barrier FROM barriers b WHERE b.group_id = of_workflow::uuid AND b.key = name;
        END IF;
    END IF;
    IF barrier.barrier_id IS NOT NULL AND path = '' THEN
        SELECT sum(octet_length(c.result::text)) INTO size
        FROM generate_series(0, barrier.members - 1) AS number
        JOIN tasks c ON c.workflow_id = of_workflow AND c.workflow_key = name || '[' || number || ']';
        IF size > at_most THEN
            RAISE EXCEPTION 'the results of % have % bytes together, and % are the most', name, size, at_most
            USING ERRCODE = 'WL422', DETAIL = place;
        END IF;
        -- To find a row takes as long as to read 1,000 bytes.
        unread := unread - barrier.members * 1000 - coalesce(size, 0);
        value := result_of(barrier.barrier_id, true);
        RETURN;
    ELSIF barrier.barrier_id IS NOT NULL THEN
        -- One of many results, and the others stay where they are. Nothing else is in a list.
        SELECT c.task_id INTO found FROM tasks c
        WHERE path ~ '^/(0|[1-9]\d{0,3})(/|$)' AND c.workflow_id = of_workflow
          AND c.workflow_key = name || '[' || substring(path FROM '^/(\d+)') || ']';
        path := substring(path FROM '^/\d+(.*)$');
    ELSIF found IS NULL AND name::uuid = ANY (parents) THEN
        found := name::uuid;
    END IF;
    SELECT r.unread, r.value INTO unread, value FROM read_at(result_of(found, false), path, unread) AS r;
EXCEPTION WHEN invalid_text_representation THEN
    RETURN;
END $$;

-- Which member of a barrier a task is, the barrier's key, and the list that the task has an element of. A member is
-- called `pages[7]`, and no other key has a bracket. Null for any other task.

CREATE FUNCTION number_of(own_key text) RETURNS int LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN right(own_key, 1) = ']' THEN rtrim(split_part(own_key, '[', 2), ']')::int END
$$;

CREATE FUNCTION key_of_barrier(own_key text) RETURNS text LANGUAGE sql IMMUTABLE AS $$
    SELECT CASE WHEN right(own_key, 1) = ']' THEN split_part(own_key, '[', 1) END
$$;

CREATE FUNCTION list_of(of_workflow text, own_key text) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
BEGIN
    RETURN (
        SELECT pointed(result_of(b.source, b.source_is_barrier), b.path) FROM barriers b
        WHERE b.group_id = of_workflow::uuid AND b.key = key_of_barrier(own_key));
END $$;
