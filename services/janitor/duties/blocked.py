"""Blocked tasks: a page of them is looked through, should the end of a parent ever have gone unnoticed."""

import logging
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.tasks import dependencies

log = logging.getLogger("janitor")


async def recheck_blocked(db: Database, after: UUID | None) -> UUID | None:
    """Returns where the next page begins."""
    reached, mended = await dependencies.recheck(db, after)
    if mended:
        log.error("%d blocked tasks had not been told what became of their dependencies", mended)
    return reached
