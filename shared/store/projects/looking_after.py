"""Projects that wait for a proof, that are busy, and whose run has ended."""

from uuid import UUID

from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.store.record import Record, fetch

ORPHANS = """
    SELECT p.project_id FROM projects p LEFT JOIN project_runs r ON r.run_id = p.current_run_id
    LEFT JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = r.task_id OFFSET 0) AS t ON true
    WHERE p.state <> 'idle'
      AND (r.run_id IS NULL OR (r.ended_at IS NOT NULL AND p.forced_at IS NULL)
           OR (r.ended_at IS NULL AND (t.task_id IS NULL OR t.life <> r.life OR t.completed_at IS NOT NULL)))
"""
"""Projects that are not idle, whose run has ended, and that wait for no proof."""


class Forced(Record):
    """A project that is to be stopped by force, and is not proven to have stopped."""

    project_id: UUID


class Busy(Record):
    """How many queues are in a state, and for how long the one that has stopped longest has done so."""

    state: str
    forced: bool
    queues: int
    stopping_seconds: float


async def unproven(db: Database) -> list[UUID]:
    query = "SELECT project_id FROM projects WHERE state <> 'idle' AND forced_at IS NOT NULL ORDER BY project_id"
    return [row.project_id for row in await fetch(db, Forced, query)]


async def count_orphans(db: Database) -> int:
    """Projects that have an ended run and no pending row about it. There must be none."""
    query = f"""
        SELECT count(*)::int FROM ({ORPHANS}) AS orphans WHERE NOT EXISTS (
            SELECT 1 FROM outbox o WHERE o.feature = '{Concern.RUN.word}' AND o.subject = orphans.project_id)
    """  # noqa: S608 - texts of our own
    number: int = await db.fetchval(query)
    return number


async def count_busy(db: Database) -> list[Busy]:
    """Since when a queue stops is known from its history: asked to, or by force."""
    return await fetch(
        db,
        Busy,
        """
        SELECT p.state, p.forced_at IS NOT NULL AS forced, count(*)::int AS queues,
               coalesce(max(extract(epoch FROM clock_timestamp() - coalesce(p.forced_at, asked.at))), 0)::float
                   AS stopping_seconds
        FROM projects p LEFT JOIN LATERAL (
            SELECT e.at FROM project_events e
            WHERE e.project_id = p.project_id AND e.type = 'stop'
              AND p.state = 'stopping' AND p.forced_at IS NULL
            ORDER BY e.seq DESC LIMIT 1
        ) AS asked ON true
        WHERE p.state <> 'idle'
        GROUP BY p.state, p.forced_at IS NOT NULL
        """,
    )
