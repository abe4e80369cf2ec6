"""What waits, runs and has ended in each queue, in one statement: one snapshot, true under any load."""

from windlass.shared.db import Database
from windlass.shared.states import State
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch

LOOKED_AT = 5000
"""Of one kind of waiting tasks: what there is more of is counted by the tallies alone."""


class QueueStatus(Record):
    """One queue: an actor's tasks at a provider. Tasks of before that nobody knows the actor of have no queue."""

    queue: str | None
    actor: str | None
    provider: str
    fresh: int
    retry: int
    scheduled: int
    blocked: int
    queued: int
    running: int
    retrying: int
    completed: int
    dead: int
    cancelled: int
    oldest_age_seconds: float | None
    workers: int
    capacity: int


async def status(
    db: Database, *, user_id: str | None, heard_within_seconds: float, looked_at: int = LOOKED_AT
) -> tuple[list[QueueStatus], dict[str, int]]:
    """Each queue, and how many tasks are in each state; of one user's tasks, or of everybody's.

    What was submitted and has ended is counted already: `task_counts`, where `''` is everybody, and the tallies that
    have not been folded into it. Times are compared with `now()`, this statement's own.
    """
    rows = await fetch(
        db,
        QueueStatus,
        f"""
        WITH serving AS (
            SELECT queue, count(*) AS workers, sum(
                CASE WHEN w.async_queues = '{{}}' OR w.queues <@ w.async_queues THEN w.capacity
                     WHEN queue = ANY (w.async_queues) THEN w.async_capacity
                     ELSE w.capacity - w.async_capacity END)::bigint AS capacity
            FROM workers w, unnest(w.queues) AS queue
            WHERE w.state = 'active' AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $2) GROUP BY queue
        )
        SELECT f.actor || '.' || f.provider AS queue, f.actor, f.provider, f.fresh, f.retry, f.scheduled, f.blocked,
               f.queued, f.running, f.retrying, f.completed, f.dead, f.cancelled,
               extract(epoch FROM now() - f.oldest_at)::float AS oldest_age_seconds,
               coalesce(serving.workers, 0) AS workers, coalesce(serving.capacity, 0) AS capacity
        FROM {named("queue_figures")}($1, $3) AS f LEFT JOIN serving ON serving.queue = f.actor || '.' || f.provider
        ORDER BY queue
        """,  # noqa: S608 - a name of our own
        user_id,
        heard_within_seconds,
        looked_at,
    )
    return rows, count_states(rows)


def count_states(rows: list[QueueStatus]) -> dict[str, int]:
    return {state.value: sum(row[state] for row in rows) for state in State}


async def fold_tallies(db: Database) -> None:
    """Adds what has been tallied to the counts: each user's, and everybody's.

    In one statement, so that a reader finds each task in one place or the other. Two that fold at once share the
    tallies between them; those that are appended meanwhile are left to the next time.
    """
    await db.execute(
        """
        WITH taken AS (
            DELETE FROM task_tallies RETURNING user_id, provider, actor, status, tasks
        ), named AS (
            SELECT t.user_id, t.provider, coalesce(nullif(t.actor, ''), p.actor, '') AS actor, t.status, t.tasks
            FROM taken t LEFT JOIN providers p ON p.name = t.provider
        )
        INSERT INTO task_counts (user_id, provider, actor, status, tasks)
        SELECT owner, provider, actor, status, sum(tasks)
        FROM named CROSS JOIN LATERAL (VALUES (user_id), ('')) AS counted_for(owner)
        GROUP BY owner, provider, actor, status ORDER BY owner, provider, actor, status
        ON CONFLICT (user_id, provider, actor, status) DO UPDATE SET tasks = task_counts.tasks + excluded.tasks
        """
    )


async def mend_tallies(db: Database) -> int:
    """Puts right what the tallies say about the living; returns how many tasks nobody had told of."""
    mended: int = await db.fetchval(f"SELECT {named('mend_tallies')}()")
    return mended
