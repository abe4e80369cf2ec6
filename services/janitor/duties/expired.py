"""Expired tasks: those too old to start are buried, not started."""

import logging

from windlass.shared.db import Database
from windlass.shared.store import tasks

log = logging.getLogger("janitor")


async def bury_expired(db: Database) -> None:
    while rows := await tasks.expire(db):
        log.info("%d tasks were too old to start", len(rows))
