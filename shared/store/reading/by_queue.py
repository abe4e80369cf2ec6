"""Lists by provider or actor: the queues that its tasks are in while they live, and whether any of those is blocked."""

from windlass.shared.db import Database
from windlass.shared.filters import Filter
from windlass.shared.store.record import Record, fetchrow

FEW_BLOCKED_BYTES = 256 * 1024
"""Of the index of the blocked, about 8,000 tasks: so many are looked through sooner than the tallies are added up."""

SOME_BLOCKED = f"""pg_backend_pid() > 0 AND (
    (SELECT pg_relation_size(to_regclass('tasks_blocked')) < {FEW_BLOCKED_BYTES}) OR EXISTS (SELECT FROM (
        SELECT c.provider, c.actor, c.tasks FROM task_counts AS c WHERE c.user_id = '' AND c.status = 'blocked'
        UNION ALL
        SELECT y.provider, y.actor, y.tasks FROM task_tallies AS y WHERE y.status = 'blocked'
    ) AS told WHERE told.actor = '' OR told.actor || '.' || told.provider = ANY ({{}})
    GROUP BY told.provider, told.actor HAVING sum(told.tasks) <> 0))"""  # noqa: S608 - a number of ours
"""That tasks of these queues may be blocked: of no row, so it is asked once, and where it is false none is read. It is
part of the statement and so of its snapshot: what comes to be blocked between two looks would be in neither. Only a
session's own process may say its number, so that nobody starts others for what is mostly nothing: that took 20 ms."""

FEW_LIVING = 10_000
"""Of an actor: looked up and sorted. Of more, enough are met on the way through the newest that live."""


class Places(Record):
    """The queues in which the tasks of a filter are while they live, and how many of its actor's do."""

    queues: list[str]
    living: int


async def queues_of(db: Database, wanted: Filter) -> list[str] | None:
    """All that the filter's provider and actor have; none where it names neither, or an actor of very many. The counts
    are a minute old at most, and decide over nothing but the way."""
    actor = "agent" if wanted.actor is None and wanted.subagent_type is not None else wanted.actor
    if wanted.provider is None and actor is None:
        return None
    row = await fetchrow(
        db,
        Places,
        """
        SELECT ARRAY(
            SELECT q.queue::text FROM queues AS q
            WHERE q.provider = coalesce($1, q.provider) AND q.actor = coalesce($2, q.actor)
        ) AS queues, coalesce((
            SELECT sum(CASE c.status WHEN 'submitted' THEN c.tasks WHEN 'blocked' THEN 0 ELSE -c.tasks END)
            FROM task_counts AS c WHERE c.user_id = '' AND c.actor = $2
        ), 0)::bigint AS living
        """,
        wanted.provider,
        actor,
    )
    assert row is not None, "a statement without a table has one row"
    return row.queues if wanted.provider is not None or row.living <= FEW_LIVING else None
