"""The reconciler: counts the tasks that nobody is going to move. It must find none, and says so loudly when it does."""

import logging

from shared.db import Database
from shared.settings import Settings
from shared.store import reconciliation

log = logging.getLogger("janitor")


async def count_unaccounted(db: Database, settings: Settings) -> int:
    after = 2 * (settings.lease_seconds + settings.safety_poll_seconds)
    found = await reconciliation.count_unaccounted(db, after_seconds=after)
    for owner, number in found.items():
        if number:
            log.error("%d tasks are unaccounted for: the %s should have moved them", number, owner)
    return sum(found.values())
