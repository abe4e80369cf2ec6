-- Makes one task for each element of a node's list, once, whoever does it: under the workflow's lock, and only while
-- nobody has. The tasks hold no copy of their elements: each finds its own, by its number, when it is claimed. A list
-- that is none, or too long, fails the node; an empty one completes it. Returns what was stored, as counts, or no row
-- when nothing was to be done.

CREATE FUNCTION expand_next(at_most int) RETURNS TABLE (node_id uuid, children int, actor text, provider text)
LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    chosen uuid;
    owner  uuid;
BEGIN
    SELECT n.node_id, n.workflow_id INTO chosen, owner FROM workflow_nodes n
    WHERE n.ready_at IS NOT NULL AND n.expanded_at IS NULL AND n.ended_as IS NULL
    ORDER BY n.node_id LIMIT 1;
    IF NOT FOUND THEN RETURN; END IF;
    RETURN QUERY SELECT chosen, e.stored, e.actor, e.provider FROM expand_node(chosen, owner, at_most) AS e;
END $$;

CREATE FUNCTION expand_node(chosen uuid, owner uuid, at_most int, OUT stored int, OUT actor text, OUT provider text)
LANGUAGE plpgsql AS $$
DECLARE
    node  workflow_nodes;
    list  jsonb;
    fault text;
    was   text;
    keys  text[];
BEGIN
    stored := 0;
    PERFORM 1 FROM workflows w WHERE w.workflow_id = owner FOR NO KEY UPDATE;
    SELECT * INTO node FROM workflow_nodes n
    WHERE n.node_id = chosen AND n.ready_at IS NOT NULL AND n.expanded_at IS NULL AND n.ended_as IS NULL;
    IF NOT FOUND THEN RETURN; END IF;
    was := node.status;
    actor := node.template ->> 'actor';
    provider := node.template ->> 'provider';

    list := pointed(result_of(node.source, node.source_is_node), node.path);
    fault := CASE WHEN list IS NULL THEN 'there is nothing at ' || node.path || ' in the result that it is for each of'
                  WHEN jsonb_typeof(list) <> 'array' THEN 'a list is wanted, and ' || jsonb_typeof(list) || ' is there'
                  WHEN jsonb_array_length(list) > at_most THEN 'the list has ' || jsonb_array_length(list)
                       || ' elements, and ' || at_most || ' are the most' END;
    IF fault IS NULL AND node.template ? 'concurrency_parts' THEN
        keys := ARRAY(
            SELECT key_of_element(node.template, number, list)
            FROM generate_series(0, jsonb_array_length(list) - 1) AS number ORDER BY number);
        SELECT 'the concurrency key of element ' || k.place - 1 || ' has ' || length(k.key) || ' characters, and '
               || 255 || ' are the most' INTO fault
        FROM unnest(keys) WITH ORDINALITY AS k(key, place) WHERE length(k.key) > 255 ORDER BY k.place LIMIT 1;
    END IF;
    IF fault IS NOT NULL THEN
        UPDATE workflow_nodes n SET ended_as = 'dead', error = jsonb_build_object(
            'type', 'InvalidInput', 'kind', 'permanent', 'message', '/for_each: ' || fault, 'stack_trace', NULL,
            'attempt', 0, 'details', jsonb_build_object('pointer', '/for_each'))
        WHERE n.node_id = chosen;
        PERFORM count_nodes(ARRAY[chosen], ARRAY[was], 1);
        PERFORM advance_nodes(ARRAY[chosen]);
    ELSE
        stored := jsonb_array_length(list);
        -- Its tasks are counted while it still seems to wait: between the two it must not seem to have completed.
        IF stored > 0 THEN
            PERFORM store_tasks((
                SELECT jsonb_agg(node.template || jsonb_build_object(
                    'task_id', new_id(), 'workflow_key', node.key || '[' || number || ']')
                    || CASE WHEN keys[number + 1] IS NULL THEN '{}'
                            ELSE jsonb_build_object('concurrency_key', keys[number + 1]) END ORDER BY number)
                FROM generate_series(0, stored - 1) AS number));
        END IF;
        UPDATE workflow_nodes n SET expanded_at = clock_timestamp(), children = stored WHERE n.node_id = chosen;
        PERFORM count_nodes(ARRAY[chosen], ARRAY[was]);
        PERFORM advance_nodes(ARRAY[chosen]) FROM workflow_nodes n
        WHERE n.node_id = chosen AND n.status IN ('completed', 'dead', 'cancelled');
    END IF;
END $$;
