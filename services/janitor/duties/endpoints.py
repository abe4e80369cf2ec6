"""Webhooks: finds endpoints whose daily probe is due, and those that need a look. Their subscriber looks."""

import logging

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared import db
from windlass.shared.features.webhooks import checks
from windlass.shared.settings import Settings

log = logging.getLogger("janitor")


async def look_after_endpoints(connection: db.Database) -> float:
    """Returns how long to wait for the next time."""
    await checks.probe(connection)
    return UNTIL_CALLED


async def recheck_endpoints(pool: db.Database, settings: Settings) -> None:
    found = await checks.check(pool, held_most=settings.webhook_held_most, held_days=settings.webhook_held_days)
    if found:
        log.info("webhooks_checked endpoints=%d", found)
