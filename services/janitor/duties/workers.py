"""Dead workers: those that were not heard of for a whole lease are marked as lost."""

import logging

from windlass.shared.db import Database
from windlass.shared.process import log_context
from windlass.shared.settings import Settings
from windlass.shared.store.operating import workers

log = logging.getLogger("janitor")


async def lose_silent_workers(db: Database, settings: Settings) -> None:
    for row in await workers.lose_silent(db, silent_for_seconds=settings.lease_seconds):
        with log_context.about(worker=row.worker_id):
            log.warning("worker %s has not been heard of for %g s: lost", row.worker_id, settings.lease_seconds)
