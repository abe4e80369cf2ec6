"""Submission keys: those whose time is over are put away, a chunk at a time."""

import logging

from windlass.shared.db import Database
from windlass.shared.store.tasks import submission_keys

log = logging.getLogger("janitor")


async def forget_expired_keys(db: Database) -> None:
    while removed := await submission_keys.forget_expired(db):
        log.info("%d submission keys had expired", removed)
