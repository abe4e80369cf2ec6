"""Looks for tasks that no part of the system is going to move: there must be none."""

from shared.db import Database


async def count_unaccounted(db: Database, *, after_seconds: float) -> dict[str, int]:
    """How many tasks should have been moved so long ago by somebody, and by whom.

    - janitor: a lease has run out, or a waiting task has expired, and nobody took it.
    - dispatcher: a due task was not rung for although nothing of its provider's is under way, full, paused or open, or
      was so only until a moment ago; or was rung for and is no longer looked after.
    - dependencies: every parent has completed or one has failed, and the child still waits.
    """
    row = await db.fetchrow(
        """
        WITH late AS (SELECT clock_timestamp() - make_interval(secs => $1) AS since),
        idle AS (
            SELECT p.name FROM providers p, late
            WHERE bar_of(p, late.since) IS NULL
              AND NOT EXISTS (SELECT 1 FROM provider_events e WHERE e.provider = p.name AND e.at > late.since)
              AND NOT EXISTS (
                SELECT 1 FROM tasks t
                WHERE t.provider = p.name AND t.status IN ('queued', 'retrying') AND t.doorbell_token IS NOT NULL)
              AND held_slots(p.name) < coalesce(p.limit_override, p.configured_limit, 2147483647)
        )
        SELECT
            (SELECT count(*) FROM tasks, late WHERE status = 'running' AND lease_expires_at < since)
            + (SELECT count(*) FROM tasks, late
               WHERE status IN ('blocked', 'queued', 'retrying') AND expires_at < since) AS janitor,
            (SELECT count(*) FROM tasks, late
             WHERE status IN ('queued', 'retrying') AND doorbell_token IS NULL AND available_at < since
               AND (expires_at IS NULL OR expires_at > since) AND provider IN (SELECT name FROM idle))
            + (SELECT count(*) FROM tasks, late
               WHERE status IN ('queued', 'retrying') AND doorbell_at < since) AS dispatcher,
            (SELECT count(*) FROM tasks t, late
             WHERE t.status = 'blocked' AND t.updated_at < since AND (
                 SELECT bool_and(p.status = 'completed') OR bool_or(p.status IN ('dead', 'cancelled'))
                 FROM task_dependencies d JOIN tasks p ON p.task_id = d.parent_id WHERE d.child_id = t.task_id)
            ) AS dependencies
        """,
        after_seconds,
    )
    assert row is not None, "an aggregate always has a row"
    return dict(row)
