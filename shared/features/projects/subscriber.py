"""Projects follow the tasks of their runs: an end closes the run, and the next one starts or the queue stops."""

from collections.abc import Sequence

import asyncpg

from windlass.shared.db import Database
from windlass.shared.features.feature import Feature
from windlass.shared.features.projects import queries
from windlass.shared.features.projects.turn import FEATURE, Turn
from windlass.shared.store.outbox import Move


async def handle(db: Database, moves: Sequence[Move]) -> None:
    """Moves are marks: each project is looked at once."""
    assert not isinstance(db, asyncpg.Pool), "handled in a transaction"
    for project_id in sorted({move.subject for move in moves}):
        found = await queries.lock(db, project_id)
        if found is not None:
            turn = Turn(db, found)
            await turn.settle([move for move in moves if move.subject == project_id])
            await turn.write()
            turn.report()


PROJECTS = Feature(FEATURE, handle)
