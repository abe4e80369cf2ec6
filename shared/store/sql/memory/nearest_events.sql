-- The events whose vectors of a model are nearest to a question's, by pgvector's index; none where there is no index.
-- Those that the scope leaves out are passed over inside the scan, which goes on until it has enough or has seen
-- 20,000: fewer than were asked for says that there may be more.

CREATE FUNCTION nearest_events(
    of_model uuid, asked real[], at_most int, owner text, of_project text, of_type text, after timestamptz
)
RETURNS TABLE (event_id uuid) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    kept_as text;
    place   text;
BEGIN
    SELECT i.kept_as, i.place INTO kept_as, place FROM vector_indexes() AS i
    WHERE i.model_id = of_model AND i.is_valid AND i.dimensions = cardinality(asked);
    IF NOT FOUND THEN
        RETURN;
    END IF;
    PERFORM set_config('hnsw.ef_search', least(at_most * 4, 1000)::text, true),
            set_config('hnsw.iterative_scan', 'relaxed_order', true);
    -- With the model written out, or no plan would know that the index is this one's. OFFSET 0 keeps the plan from
    -- reading all that is in the scope.
    RETURN QUERY EXECUTE format($near$
        SELECT v.event_id FROM embeddings v
        CROSS JOIN LATERAL (
            SELECT 1 FROM agent_events e
            WHERE e.event_id = v.event_id AND ($2 IS NULL OR e.user_id = $2) AND ($3 IS NULL OR e.project_id = $3)
              AND ($4 IS NULL OR e.subagent_type = $4) AND ($5 IS NULL OR e.at > $5) OFFSET 0
        ) AS seen
        WHERE v.model_id = %1$L
        ORDER BY v.vector::%2$s OPERATOR(%3$s.<=>) $1::%2$s LIMIT %4$s
    $near$, of_model, kept_as, place, at_most) USING asked, owner, of_project, of_type, after;
END $$;

-- Each model that an index can be made for, and whether it has one: where pgvector is, in a version whose scans go on,
-- and where its index can hold so many dimensions. Kept in half precision, for the nearest are compared exactly anyway.

CREATE FUNCTION vector_indexes()
RETURNS TABLE (
    model_id uuid, dimensions int, name text, kept_as text, place text, is_there boolean, is_valid boolean
)
LANGUAGE sql STABLE AS $$
    SELECT m.model_id, m.dimensions, 'embeddings_near_' || replace(m.model_id::text, '-', ''),
           format('%I.halfvec(%s)', n.nspname, m.dimensions), quote_ident(n.nspname),
           i.indexrelid IS NOT NULL, coalesce(i.indisvalid, false)
    FROM embedding_models m
    JOIN pg_extension x ON x.extname = 'vector' AND string_to_array(x.extversion, '.')::int[] >= '{0,8}'
    JOIN pg_namespace n ON n.oid = x.extnamespace
    LEFT JOIN pg_class c ON c.relname = 'embeddings_near_' || replace(m.model_id::text, '-', '')
                            AND c.relnamespace = 'public'::regnamespace
    LEFT JOIN pg_index i ON i.indexrelid = c.oid AND i.indrelid = 'embeddings'::regclass
    WHERE m.dimensions <= 4000
$$;
