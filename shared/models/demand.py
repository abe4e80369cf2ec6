"""The view that autoscalers read: how many tasks of each queue run, or could if somebody were there to run them."""

from sqlalchemy import DDL, event
from sqlmodel import SQLModel

from windlass.shared.sql_fragments import due

MOST_COUNTED = 10_000
"""Of one queue; no pool grows that large, and counting a backlog of millions would take its time."""

_DUE = due("now()")

READ_DEMAND = f"""
CREATE FUNCTION read_demand() RETURNS TABLE (queue text, wanted bigint) LANGUAGE plpgsql STABLE
SECURITY DEFINER SET search_path = public, pg_temp SET jit = off SET enable_sort = off SET enable_seqscan = off AS $$
BEGIN
RETURN QUERY
WITH own AS MATERIALIZED (
    SELECT q.queue::text AS name, q.provider, q.actor, running.tasks AS running, running.trials, resuming.held,
           resuming.due AS resuming
    FROM queues q JOIN providers p ON p.name = q.provider
    CROSS JOIN LATERAL (
        SELECT count(*) AS tasks, count(*) FILTER (WHERE t.claim_token = p.trial_token) AS trials
        FROM tasks t WHERE t.provider = p.name AND t.queue = q.queue AND t.status = 'running'
    ) AS running
    CROSS JOIN LATERAL (
        SELECT count(*) AS held, count(*) FILTER (WHERE {_DUE}) AS due
        FROM tasks t WHERE t.provider = p.name AND t.queue = q.queue AND t.job_open AND t.status <> 'running'
    ) AS resuming
)
SELECT q.name AS queue,
       q.running + CASE
           WHEN p.paused OR p.paused_until > now() OR p.breaker_until > now() THEN 0
           WHEN p.paused_until IS NOT NULL OR p.breaker_state <> 'closed'
               THEN CASE WHEN whole.trials > 0 THEN 0 ELSE least(1, q.resuming + waiting.admitted) END
           ELSE q.resuming + waiting.admitted
       END AS wanted
FROM own q JOIN providers p ON p.name = q.provider
CROSS JOIN LATERAL (
    SELECT sum(o.running)::bigint AS running, sum(o.trials)::bigint AS trials, sum(o.held)::bigint AS held
    FROM own o WHERE o.provider = p.name
) AS whole
CROSS JOIN LATERAL (
    -- Of each key no more than it has room for; what has been parked is held, and counts nowhere.
    SELECT coalesce(sum(of_key.tasks), 0)::bigint AS tasks, coalesce(sum(least(of_key.tasks, (
               SELECT greatest(0, a.concurrency_limit - (
                   SELECT count(*) FROM tasks t
                   WHERE t.provider = q.provider AND t.actor = q.actor AND t.concurrency_key = of_key.key
                     AND (t.status = 'running' OR t.job_open)))
               FROM actors a WHERE a.name = q.actor AND a.concurrency_limit IS NOT NULL))), 0)::bigint AS startable
    FROM (
        SELECT one.key, count(*) AS tasks FROM (
            SELECT t.concurrency_key AS key FROM tasks t
            WHERE t.provider = q.provider AND t.actor = q.actor AND t.concurrency_key IS NOT NULL AND t.held = '{{}}'
              AND NOT t.job_open
    AND {_DUE}
            ORDER BY t.concurrency_key LIMIT {MOST_COUNTED}
        ) AS one GROUP BY one.key
    ) AS of_key
) AS keyed
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE counted.key IS NULL) AS tasks FROM (
        SELECT counted.key FROM (VALUES ('fresh'), ('retry')) AS of(lane)
        CROSS JOIN generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT t.concurrency_key AS key FROM tasks t
            WHERE t.queue = q.name AND t.lane = of.lane AND t.priority = level.priority
              AND NOT t.job_open
    AND {_DUE}
            -- Those with keys stand among the others, and are passed over.
            ORDER BY t.available_at LIMIT CASE WHEN keyed.tasks > 0 THEN {MOST_COUNTED}
                ELSE least(coalesce(p.limit_override, p.configured_limit), {MOST_COUNTED}) END
        ) AS counted
        LIMIT {MOST_COUNTED}
    ) AS counted
) AS plain
CROSS JOIN LATERAL (SELECT coalesce(p.rate_override, p.configured_rate) AS in_force) AS rate
CROSS JOIN LATERAL (
    SELECT greatest(0, (rate.in_force ->> 'limit')::int - coalesce(sum(taken.places), 0)) AS places
    FROM unnest(p.rate_moments, p.rate_counts) AS taken(at, places)
    WHERE taken.at + make_interval(secs => (rate.in_force ->> 'per_seconds')::float * 21 / 20) > now()
) AS unused
CROSS JOIN LATERAL (
    -- What there is none of, a limit or a rate, is null, and `least` passes it over.
    SELECT greatest(0, least(
        plain.tasks + keyed.startable,
        coalesce(p.limit_override, p.configured_limit) - whole.running - whole.held,
        CASE WHEN rate.in_force IS NOT NULL THEN unused.places END))::bigint AS admitted
) AS waiting;
END $$
"""  # noqa: S608 - the states' own words
"""Apart from the engine's functions, which every migration drops and makes anew, and without any of them. Slots that
are free, places that are left in the rate (`rate_window.sql`) and the room of concurrency keys (`keys.sql`) decide
how much may start, as in `shared/admission.py`. A queue may want all the places that its provider has free, whatever
waits in the others: which of them somebody will serve is for the pools to say, and one that wanted nothing until its
turn came would begin too late. One index probe per lane and priority, so that tasks scheduled for later are never
walked over. Each is asked for in the order of its index, and what has no order has no limit: a limit alone makes the
planner walk through all that live. A function, because a view cannot say how it is to be planned, and whoever asks
has the server's own settings: compiling this statement took a hundred times as long as running it. With its owner's
rights, as a view is."""

SCALE_DEMAND = "CREATE VIEW scale_demand AS SELECT queue, wanted FROM read_demand()"

READABLE = "GRANT SELECT ON scale_demand TO PUBLIC"
"""Names of queues and two sums: whoever scales pools needs a login and no right to anything else."""

for statement in (READ_DEMAND, SCALE_DEMAND, READABLE):
    event.listen(SQLModel.metadata, "after_create", DDL(statement))  # type: ignore[no-untyped-call]
