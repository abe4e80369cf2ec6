"""Workflows follow their tasks: they are counted again, and what follows from the counts is done."""

from collections.abc import Sequence

import asyncpg

from windlass.shared.db import Database
from windlass.shared.features.feature import Feature
from windlass.shared.features.workflows import queries
from windlass.shared.features.workflows.turn import FEATURE, MARKS_AT_ONCE, Turn
from windlass.shared.store.outbox import Move


async def handle(db: Database, moves: Sequence[Move]) -> None:
    """Moves are marks: each workflow is looked at once."""
    assert not isinstance(db, asyncpg.Pool), "handled in a transaction"
    for workflow_id in sorted({move.subject for move in moves}):
        found = await queries.lock(db, workflow_id)
        if found is not None:
            turn = Turn(db, found)
            await turn.settle()
            turn.report()


WORKFLOWS = Feature(FEATURE, handle, rows_at_once=MARKS_AT_ONCE)
