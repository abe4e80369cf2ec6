-- A worker's places, by kind: threads and places on its event loop, with the queues that they serve and how many are
-- taken. A worker of one kind is counted as a whole.

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
