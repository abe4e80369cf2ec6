-- Gives tasks that name a url the endpoint that their submitter has for it, and makes one where there is none: with the
-- secret that came along, which nobody else has seen.

CREATE FUNCTION with_endpoints(submissions jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO webhooks (webhook_id, user_id, url, secret)
    SELECT DISTINCT ON (s.webhook_owner, s.webhook_url) s.new_webhook_id, s.webhook_owner, s.webhook_url,
           decode(s.new_webhook_secret, 'hex')
    FROM jsonb_to_recordset(submissions)
        AS s(webhook_owner text, webhook_url text, new_webhook_id uuid, new_webhook_secret text)
    WHERE s.webhook_url IS NOT NULL ORDER BY s.webhook_owner, s.webhook_url
    ON CONFLICT (user_id, url) WHERE deleted_at IS NULL DO NOTHING;
    RETURN (
        SELECT jsonb_agg(CASE WHEN w.webhook_id IS NULL THEN s.it
                              ELSE s.it || jsonb_build_object('webhook_id', w.webhook_id) END ORDER BY s.place)
        FROM jsonb_array_elements(submissions) WITH ORDINALITY AS s(it, place)
        LEFT JOIN webhooks w ON w.user_id = s.it ->> 'webhook_owner' AND w.url = s.it ->> 'webhook_url'
                                AND w.deleted_at IS NULL);
END $$;
