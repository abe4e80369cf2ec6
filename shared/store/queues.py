"""What waits, runs and has ended at each provider, in one statement: one snapshot, true under any load."""

from shared.db import Database, Row
from shared.phrases import words
from shared.states import LIVE, State

LIVING = words(LIVE)


async def status(db: Database, *, user_id: str | None, heard_within_seconds: float) -> tuple[list[Row], dict[str, int]]:
    """Each provider's queue, and how many tasks are in each state; of one user's tasks, or of everybody's.

    The living are looked through. What has ended is counted already: `task_counts`, where `''` is everybody, and the
    tallies that have not been folded into it. Times are compared with `now()`, this statement's own.
    """
    rows = await db.fetch(
        f"""
        WITH live AS (
            SELECT t.provider, min(t.actor) AS actor,
                   count(*) FILTER (WHERE t.status = 'blocked') AS blocked,
                   count(*) FILTER (WHERE t.status = 'queued') AS queued,
                   count(*) FILTER (WHERE t.status = 'running') AS running,
                   count(*) FILTER (WHERE t.status = 'retrying') AS retrying,
                   count(*) FILTER (WHERE due.now AND t.lane = 'fresh') AS fresh,
                   count(*) FILTER (WHERE due.now AND t.lane = 'retry') AS retry,
                   count(*) FILTER (WHERE t.status IN ('queued', 'retrying') AND NOT due.now) AS scheduled,
                   extract(epoch FROM now() - min(t.available_at) FILTER (WHERE due.now))::float AS oldest_age_seconds
            FROM tasks t
            CROSS JOIN LATERAL (SELECT t.status IN ('queued', 'retrying') AND t.available_at <= now() AS now) AS due
            WHERE t.status IN {LIVING} AND ($1::text IS NULL OR t.user_id = $1)
            GROUP BY t.provider
        ), changed AS (
            SELECT provider, status, tasks FROM task_counts WHERE user_id = coalesce($1, '')
            UNION ALL
            SELECT provider, status, tasks FROM task_tallies WHERE $1::text IS NULL OR user_id = $1
        ), ended AS (
            SELECT provider, coalesce(sum(tasks) FILTER (WHERE status = 'completed'), 0) AS completed,
                   coalesce(sum(tasks) FILTER (WHERE status = 'dead'), 0) AS dead,
                   coalesce(sum(tasks) FILTER (WHERE status = 'cancelled'), 0) AS cancelled
            FROM changed GROUP BY provider
        ), serving AS (
            SELECT queue, count(*) AS workers FROM workers w, unnest(w.queues) AS queue
            WHERE w.state = 'active' AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $2) GROUP BY queue
        ), named AS (
            SELECT provider AS name, coalesce(p.actor, live.actor) AS actor
            FROM (SELECT name AS provider, actor FROM providers) AS p
            FULL JOIN live USING (provider) FULL JOIN ended USING (provider)
        )
        SELECT named.actor || '.' || named.name AS queue, named.actor, named.name AS provider,
               coalesce(live.fresh, 0) AS fresh, coalesce(live.retry, 0) AS retry,
               coalesce(live.scheduled, 0) AS scheduled, coalesce(live.blocked, 0) AS blocked,
               coalesce(live.queued, 0) AS queued, coalesce(live.running, 0) AS running,
               coalesce(live.retrying, 0) AS retrying, coalesce(ended.completed, 0)::bigint AS completed,
               coalesce(ended.dead, 0)::bigint AS dead, coalesce(ended.cancelled, 0)::bigint AS cancelled,
               live.oldest_age_seconds, coalesce(serving.workers, 0) AS workers
        FROM named
        LEFT JOIN live ON live.provider = named.name
        LEFT JOIN ended ON ended.provider = named.name
        LEFT JOIN serving ON serving.queue = named.actor || '.' || named.name
        ORDER BY queue
        """,  # noqa: S608 - the states' own words
        user_id,
        heard_within_seconds,
    )
    return rows, count_states(rows)


STATES = ("blocked", "queued", "running", "retrying", "completed", "dead", "cancelled")


def count_states(rows: list[Row]) -> dict[str, int]:
    return {state.value: sum(row[state] for row in rows) for state in State}


async def fold_tallies(db: Database) -> None:
    """Adds what has been tallied to the counts: each user's, and everybody's.

    In one statement, so that a reader finds each task in one place or the other. Two that fold at once share the
    tallies between them; those that are appended meanwhile are left to the next time.
    """
    await db.execute(
        """
        WITH taken AS (
            DELETE FROM task_tallies RETURNING user_id, provider, status, tasks
        )
        INSERT INTO task_counts (user_id, provider, status, tasks)
        SELECT owner, provider, status, sum(tasks)
        FROM taken CROSS JOIN LATERAL (VALUES (user_id), ('')) AS counted_for(owner)
        GROUP BY owner, provider, status ORDER BY owner, provider, status
        ON CONFLICT (user_id, provider, status) DO UPDATE SET tasks = task_counts.tasks + excluded.tasks
        """
    )
