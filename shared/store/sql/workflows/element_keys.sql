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
