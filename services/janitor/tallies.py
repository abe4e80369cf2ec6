"""Tallies: the ends that were noted since the last time are folded into the counts."""

from shared.db import Database
from shared.store import queues


async def fold_tallies(db: Database) -> None:
    await queues.fold_tallies(db)
