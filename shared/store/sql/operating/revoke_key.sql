-- Revokes a key. The owner's endpoints and schedules are looked at afterwards: a right may have ended with the key.
-- Revoking it again changes nothing.

CREATE FUNCTION revoke_key(id text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    owner text;
BEGIN
    UPDATE api_keys k SET revoked_at = coalesce(k.revoked_at, clock_timestamp()) WHERE k.key_id = id
    RETURNING k.user_id INTO owner;
    IF NOT FOUND THEN RETURN; END IF;
    PERFORM pg_notify('windlass_keys', id);
    PERFORM write_event('delivery', w.webhook_id, 'look') FROM webhooks w
    WHERE w.user_id = owner AND w.deleted_at IS NULL;
    PERFORM write_event('schedule', s.schedule_id, 'revoke') FROM schedules s
    WHERE s.user_id = owner AND s.state = 'active' AND s.deleted_at IS NULL AND NOT has_a_key(owner);
END $$;
