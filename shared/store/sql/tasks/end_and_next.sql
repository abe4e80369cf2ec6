-- Ends attempts and gives their worker what is next, in one call. In this order: the worker's turn; all providers that
-- the ends may change and all guarded ones that are asked for, by name, in one statement; the ended rows; what follows
-- from their ends, so that a 429 of this call starts nothing; and last the claim, which waits for nobody. It answers as
-- `end_tasks` does, and then as `claim_next`.

CREATE FUNCTION end_and_next(
    endings jsonb, rules jsonb, of_queues text[], places int[], tokens uuid[], aside uuid[], claimant text, epoch int,
    lease_seconds float
)
RETURNS TABLE (
    claim_token uuid, status text, actor text, provider text, age_seconds float, task_id uuid, payload jsonb,
    checkpoint jsonb, attempt int, retry_count int, max_retries int, interrupt_count int, stall_count int,
    rate_limited_count int, timeout_seconds float, waited_seconds float, retry_delays jsonb, concerns int,
    job_open boolean, is_guarded boolean, user_id text, queue text, word text
) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
    asked  text[] := ARRAY(SELECT DISTINCT q.provider::text FROM queues q WHERE q.queue = ANY (of_queues));
    locked record;
BEGIN
    PERFORM take_turn(claimant);
    SELECT * INTO locked FROM lock_for_ends(endings, asked, rules) AS l;
    RETURN QUERY
    SELECT e.claim_token, e.status, e.actor, e.provider, e.age_seconds, NULL::uuid, NULL::jsonb, NULL::jsonb, NULL::int,
           NULL::int, NULL::int, NULL::int, NULL::int, NULL::int, NULL::float, NULL::float, NULL::jsonb, NULL::int,
           NULL::boolean, NULL::boolean, NULL, NULL, NULL
    FROM end_tasks(endings, rules, locked.judged, asked) AS e;
    RETURN QUERY
    SELECT c.claim_token, NULL, c.actor, c.provider, NULL::float, c.task_id, c.payload, c.checkpoint, c.attempt,
           c.retry_count, c.max_retries, c.interrupt_count, c.stall_count, c.rate_limited_count, c.timeout_seconds,
           c.waited_seconds, c.retry_delays, c.concerns, c.job_open, c.is_guarded, c.user_id, c.queue, c.word
    FROM claim_next(of_queues, places, tokens, aside, claimant, epoch, lease_seconds, locked.guarded) AS c;
END $$;
