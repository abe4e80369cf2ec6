-- The concurrency key of a `for_each` task, made of its element as shared/concurrency_keys.py makes it of a payload:
-- text as it is, anything else as compact JSON, several values as a list, and none where one is missing or null.

CREATE FUNCTION key_of_element(template jsonb, number int, list jsonb) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    most_bytes int := 10000000; -- more than any payload may have
    part       jsonb;
    found      jsonb;
    parts      jsonb := '[]';
BEGIN
    FOR part IN
        SELECT e.part FROM jsonb_array_elements(template -> 'concurrency_parts') WITH ORDINALITY AS e(part, place)
        ORDER BY e.place
    LOOP
        SELECT r.value INTO found
        FROM resolved(part -> 'value', '', NULL, '[' || number || ']', NULL, most_bytes, list, most_bytes,
                      most_read(most_bytes)) AS r;
        found := coalesce(pointed(found, part ->> 'path'), part -> 'default');
        IF found IS NULL OR found = 'null' THEN
            RETURN NULL;
        END IF;
        parts := parts || jsonb_build_array(found);
    END LOOP;
    found := CASE WHEN jsonb_array_length(parts) = 1 THEN parts -> 0 ELSE parts END;
    RETURN CASE jsonb_typeof(found) WHEN 'string' THEN found #>> '{}' ELSE compact_json(found) END;
EXCEPTION WHEN SQLSTATE 'WL422' THEN
    RETURN NULL; -- the element has no such part: its task fails with that when it is claimed
END $$;

-- JSON without spaces, its fields in the order of their names.
CREATE FUNCTION compact_json(value jsonb) RETURNS text LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN CASE jsonb_typeof(value)
        WHEN 'array' THEN (
            SELECT '[' || coalesce(string_agg(compact_json(e.item), ',' ORDER BY e.place), '') || ']'
            FROM jsonb_array_elements(value) WITH ORDINALITY AS e(item, place))
        WHEN 'object' THEN (
            SELECT '{' || coalesce(string_agg(to_json(e.name)::text || ':' || compact_json(e.item), ','
                                              ORDER BY e.name COLLATE "C"), '') || '}'
            FROM jsonb_each(value) AS e(name, item))
        ELSE value::text END;
END $$;

-- The list of a node: what kind of value is there, how long it is, and the concurrency keys of its elements if its
-- tasks have any.

CREATE FUNCTION elements_of(wanted uuid, at_most int, OUT kind text, OUT length int, OUT keys text[])
LANGUAGE plpgsql STABLE AS $$
DECLARE
    list jsonb;
    node record;
BEGIN
    SELECT b.source, b.source_is_barrier, b.path, n.template INTO node
    FROM barriers b JOIN workflow_nodes n ON n.node_id = b.barrier_id WHERE b.barrier_id = wanted;
    list := pointed(result_of(node.source, node.source_is_barrier), node.path);
    kind := jsonb_typeof(list);
    IF kind = 'array' THEN
        length := jsonb_array_length(list);
        IF length <= at_most AND node.template ? 'concurrency_parts' THEN
            keys := ARRAY(
                SELECT key_of_element(node.template, number, list)
                FROM generate_series(0, length - 1) AS number ORDER BY number);
        END IF;
    END IF;
END $$;

-- Submits one task for each element. They have no copy of their elements: each finds its own, by its number, when it is
-- claimed.

CREATE FUNCTION store_elements(wanted uuid, length int, keys text[]) RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RETURN (
        SELECT s.refusal FROM store_tasks((
            SELECT jsonb_agg(n.template || jsonb_build_object(
                'task_id', new_id(), 'workflow_key', b.key || '[' || number || ']')
                || CASE WHEN keys[number + 1] IS NULL THEN '{}'
                        ELSE jsonb_build_object('concurrency_key', keys[number + 1]) END ORDER BY number)
            FROM workflow_nodes n JOIN barriers b ON b.barrier_id = n.node_id, generate_series(0, length - 1) AS number
            WHERE n.node_id = wanted), submitter => :concern_of_workflow) AS s);
END $$;
