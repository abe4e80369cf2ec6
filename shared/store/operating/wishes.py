"""What operators ask of a worker: to finish and go, which is kept until it hears of it; and, in a drill, to die."""

from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.record import Record, fetchrow

CHANNEL = "windlass_workers"
"""Told the id of a worker that something is asked of, or, with the word first, who is to die and over which task."""
KILL = "kill"


class DrainWish(Record):
    """That a worker is to finish and go, and why."""

    reason: str | None


async def ask_to_drain(db: Database, worker_id: str, reason: str | None) -> None:
    """It hears of it now, or when it is connected again: the wish is kept. The first reason stays."""
    await db.execute(
        """
        WITH asked AS (
            UPDATE workers SET drain_requested_at = coalesce(drain_requested_at, clock_timestamp()),
                               drain_reason = CASE WHEN drain_requested_at IS NULL THEN $2 ELSE drain_reason END
            WHERE worker_id = $1 AND state IN ('active', 'stopping') RETURNING worker_id
        )
        SELECT pg_notify($3, worker_id) FROM asked
        """,
        worker_id,
        reason,
        CHANNEL,
    )


async def drain_wish(db: Database, worker_id: str) -> DrainWish | None:
    """What an operator has asked of this worker, if anything."""
    return await fetchrow(
        db,
        DrainWish,
        "SELECT drain_reason AS reason FROM workers WHERE worker_id = $1 AND drain_requested_at IS NOT NULL",
        worker_id,
    )


async def kill(db: Database, worker_id: str, task_id: UUID) -> None:
    """Told and not kept: a worker that does not hear it lives on, and one that no longer runs the task does, too."""
    await db.execute("SELECT pg_notify($1, $2)", CHANNEL, f"{KILL} {worker_id} {task_id}")
