"""Schedules follow what they started: an end is recorded, and what waited for it starts."""

from collections.abc import Sequence

import asyncpg

from windlass.shared.db import Database
from windlass.shared.features.feature import Feature
from windlass.shared.features.schedules import queries
from windlass.shared.features.schedules.turn import FEATURE, Turn
from windlass.shared.store.outbox import Move


async def handle(db: Database, moves: Sequence[Move]) -> None:
    """Moves are marks: each schedule is looked at once. Those of a deleted schedule are recorded, too."""
    assert not isinstance(db, asyncpg.Pool), "handled in a transaction"
    for schedule_id in sorted({move.subject for move in moves}):
        row = await queries.lock(db, schedule_id)
        if row is not None:
            turn = Turn(db, row)
            await turn.settle([move for move in moves if move.subject == schedule_id])
            turn.report()


SCHEDULES = Feature(FEATURE, handle)
