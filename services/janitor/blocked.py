"""Blocked tasks: their dependencies are counted again, should a completion ever have gone unnoticed."""

from shared.db import Database
from shared.store import tasks


async def recheck_blocked(db: Database) -> None:
    await tasks.settle_blocked(db)
