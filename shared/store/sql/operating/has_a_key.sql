-- Whether a user still has a key that may start something. The operator's own schedules need none.

CREATE FUNCTION has_a_key(owner text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT owner = 'system' OR EXISTS (
        SELECT 1 FROM api_keys k
        WHERE k.user_id = owner AND k.role <> 'viewer' AND k.revoked_at IS NULL
          AND (k.expires_at IS NULL OR k.expires_at > clock_timestamp()))
$$;
