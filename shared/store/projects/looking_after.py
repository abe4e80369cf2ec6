"""What janitors see to: proofs that are waited for, events to be logged and counted, and queues that stand still."""

from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch

AT_ONCE = 200


class Said(Record):
    """Something that happened to a project, said once."""

    project_id: UUID
    seq: int
    type: str
    data: dict[str, Any]


class Forced(Record):
    """A project that is to be stopped by force, and is not proven to have stopped."""

    project_id: UUID


class Busy(Record):
    """How many queues are in a state, and for how long the one that has stopped longest has done so."""

    state: str
    forced: bool
    queues: int
    stopping_seconds: float


async def say_events(db: Database, *, at_most: int = AT_ONCE) -> list[Said]:
    """What happened since somebody asked last; no two are given the same."""
    query = f"SELECT * FROM {named('say_project_events')}($1)"  # noqa: S608 - a name of our own
    rows = await fetch(db, Said, query, at_most)
    return sorted(rows, key=lambda row: (row.project_id, row.seq))


async def choose_anew(db: Database, project_id: UUID) -> None:
    """After items were put back in bulk: the first one is what runs, if nobody has claimed another yet."""
    await db.execute(f"SELECT {named('choose_anew')}($1)", project_id)


async def unproven(db: Database) -> list[UUID]:
    query = "SELECT project_id FROM projects WHERE state <> 'idle' AND forced_at IS NOT NULL ORDER BY project_id"
    return [row.project_id for row in await fetch(db, Forced, query)]


async def recheck(db: Database, *, at_most: int = AT_ONCE) -> int:
    """Moves on the queues that nobody would move any more, and returns how many there were: there must be none."""
    mended: int = await db.fetchval(f"SELECT {named('recheck_projects')}($1)", at_most)
    return mended


async def count_orphans(db: Database) -> int:
    number: int = await db.fetchval(f"SELECT cardinality({named('orphans')}($1))", AT_ONCE)
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


async def restore(db: Database, *, step: int) -> int:
    """After a restore: returns how many runs were lost, or found to have ended."""
    gone: int = await db.fetchval(f"SELECT {named('restore_projects')}($1)", step)
    return gone
