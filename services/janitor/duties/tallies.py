"""Tallies: what was noted since the last time is folded into the counts, and now and then compared with the rows."""

import logging

from windlass.shared.db import Database
from windlass.shared.store.operating import queues

log = logging.getLogger("janitor")


async def fold_tallies(db: Database) -> None:
    await queues.fold_tallies(db)


async def mend_tallies(db: Database) -> None:
    if mended := await queues.mend_tallies(db):
        log.warning("the counts of the living were wrong by %d tasks", mended)
