-- What a task has cost so far and what comes to it, together. A figure that nobody told stays null.

CREATE FUNCTION added_usage(before jsonb, more jsonb) RETURNS jsonb LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    RETURN (
        SELECT jsonb_object_agg(figure, CASE
            WHEN before ->> figure IS NOT NULL OR more ->> figure IS NOT NULL
            THEN trim_scale(coalesce((before ->> figure)::numeric, 0) + coalesce((more ->> figure)::numeric, 0)) END)
        FROM unnest(ARRAY['cost_usd', 'prompt_tokens', 'completion_tokens']) AS figure);
END $$;
