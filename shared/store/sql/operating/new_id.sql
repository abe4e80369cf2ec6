-- An id as clients' tasks have them, which begins with the time: lists are in the order of ids.

CREATE FUNCTION new_id() RETURNS uuid LANGUAGE sql AS $$
    SELECT (lpad(to_hex((date_part('epoch', clock_timestamp()) * 1000)::bigint), 12, '0')
            || '7' || substr(gen_random_uuid()::text, 16))::uuid
$$;
