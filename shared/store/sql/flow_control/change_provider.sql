-- What an operator sets over a provider's configuration: only the keys that are there change, null goes back to what
-- is configured. In force at once: claims look at the row, and the dispatcher is woken. Opened by an operator the
-- breaker has no end, so that no trial follows; `closed` keeps it closed whatever happens. Whoever says that it is not
-- paused, or goes back to the configuration, which pauses nothing, ends a pause after a 429, too. `operator` says who
-- it was, and why, for the provider's story.

CREATE FUNCTION change_provider(name_of text, changes jsonb) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    p       providers;
    mode    text := coalesce(changes ->> 'breaker', 'auto');
    pausing boolean := coalesce((changes ->> 'paused')::boolean, false);
    said    jsonb := coalesce(changes -> 'operator', '{}');
    moment  timestamptz;
BEGIN
    SELECT * INTO p FROM providers WHERE name = name_of FOR NO KEY UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    moment := clock_timestamp();

    IF changes ? 'limit' THEN
        UPDATE providers SET limit_override = (changes ->> 'limit')::int WHERE name = name_of;
    END IF;
    IF changes ? 'rate' THEN
        UPDATE providers SET rate_override = nullif(changes -> 'rate', 'null') WHERE name = name_of;
    END IF;
    IF changes ? 'paused' THEN
        UPDATE providers SET
            paused = pausing,
            paused_until = CASE WHEN pausing THEN paused_until END,
            pause_reason = CASE WHEN pausing THEN pause_reason END
        WHERE name = name_of;
        PERFORM tell_provider(
            name_of, CASE WHEN pausing THEN 'pause' ELSE 'resume' END, moment, 'by an operator',
            said || CASE WHEN NOT pausing AND p.paused_until IS NOT NULL
                 THEN jsonb_build_object('until', p.paused_until, 'pause_reason', p.pause_reason) ELSE '{}' END)
        WHERE pausing <> p.paused OR (NOT pausing AND p.paused_until IS NOT NULL);
    END IF;
    IF changes ? 'breaker' AND mode <> p.breaker_mode THEN
        UPDATE providers SET
            breaker_mode = mode, breaker_changed_at = moment,
            breaker_state = CASE mode WHEN 'open' THEN 'open' ELSE 'closed' END,
            breaker_until = CASE mode WHEN 'open' THEN 'infinity'::timestamptz END,
            breaker_reason = CASE mode WHEN 'open' THEN 'opened by an operator' END
        WHERE name = name_of;
        PERFORM tell_provider(name_of, CASE mode WHEN 'open' THEN 'open' ELSE 'close' END, moment,
                              'by an operator', said || jsonb_build_object('mode', mode));
    END IF;
    PERFORM tell_provider(name_of, 'change', moment, 'by an operator', said || (changes - 'operator'))
    WHERE changes ?| '{limit,rate}';
    PERFORM wake_dispatcher(ARRAY[name_of]);
    RETURN true;
END $$;
