"""Moves that could not be told to whom they concern: told again, a chunk at a time."""

import logging

from windlass.shared.db import Database
from windlass.shared.store.tasks import untold

log = logging.getLogger("janitor")


async def tell_again(db: Database) -> None:
    """Until nothing is left that could be told now."""
    while True:
        row = await untold.tell_again(db)
        if row.failed:
            log.error("%d moves of tasks could not be told again: `SELECT * FROM untold` says why", row.failed)
        if row.told:
            log.info("%d moves of tasks were told late", row.told)
        else:
            return
