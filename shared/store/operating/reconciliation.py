"""Looks for tasks that no part of the system is going to move: there must be none."""

from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.functions import named

MOST_COUNTED = 1000
"""Of one kind: a thousand that nobody moves are as alarming as a million, and sooner counted."""

BLOCKED_AT_ONCE = 1000


async def count_unaccounted(
    db: Database, *, after_seconds: float, heard_within_seconds: float, blocked_after: UUID | None = None
) -> dict[str, int]:
    """How many tasks should have been moved so long ago by somebody, and by whom, as far as a thousand of each.

    - janitor: a lease has run out, or a waiting task has expired, and nobody took it.
    - dispatcher: a due task was not started although somebody serves its queue and has a place free, and its provider
      is not full, paused or open, and was not until a moment ago. Who waits in a queue that nobody serves is told of by
      health, and who must run alone by `why`.
    - dependencies: every parent has completed or one has failed, and the child still waits. Looked at are a page of the
      blocked, after the one that is named, and those that were left to be settled.

    Held tasks are not counted.
    """
    row = await db.fetchrow(
        f"""
        WITH late AS (SELECT now() - make_interval(secs => $1) AS since),
        served AS MATERIALIZED (
            SELECT q.queue, q.provider, w.heartbeat_at FROM workers w JOIN queues q ON q.queue = ANY (w.queues), late
            WHERE w.state = 'active' AND w.heartbeat_at > late.since AND w.started_at < late.since
              AND {named("has_a_place")}(w, q.queue)
        ), idle AS (
            SELECT p.name, ARRAY(
                SELECT q.queue::text FROM queues q WHERE q.provider = p.name AND EXISTS (
                    SELECT FROM served s WHERE s.queue = q.queue
                       AND s.heartbeat_at > clock_timestamp() - make_interval(secs => $5))
            ) AS queues
            FROM providers p, late
            WHERE {named("bar_of")}(p, late.since) IS NULL
              AND NOT EXISTS (SELECT 1 FROM provider_events e WHERE e.provider = p.name AND e.at > late.since)
              AND {named("held_slots")}(p.name) < coalesce(p.limit_override, p.configured_limit, 2147483647)
              -- Where some start and end, the others have their turn.
              AND NOT EXISTS (SELECT 1 FROM provider_results r WHERE r.provider = p.name AND r.at > late.since)
              AND NOT EXISTS (SELECT 1 FROM tasks t
                              WHERE t.provider = p.name AND t.status = 'running' AND t.started_at > late.since)
        )
        SELECT
            (SELECT count(*) FROM tasks, late WHERE status = 'running' AND lease_expires_at < since)
            + {named("expired_before")}((SELECT since FROM late), $2) AS janitor,
            (SELECT coalesce(sum({named("due_since")}(idle.queues, NULL, since, $2)), 0)::bigint FROM idle, late)
            AS dispatcher,
            {named("overdue_dependents")}((SELECT since FROM late), $3, $4, $2) AS dependencies
        """,  # noqa: S608 - a name of our own
        after_seconds,
        MOST_COUNTED,
        blocked_after or UUID(int=0),
        BLOCKED_AT_ONCE,
        heard_within_seconds,
    )
    assert row is not None, "an aggregate always has a row"
    return dict(row)
