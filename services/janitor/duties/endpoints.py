"""Webhooks' endpoints: what could not all be held or released at once, the daily probe of a disabled one."""

import logging

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store import webhooks

log = logging.getLogger("janitor")

AGAIN_SECONDS = 0.1
"""When somebody was in the way."""
MOST_IN_A_ROUND = 200


async def look_after_endpoints(connection: db.Database) -> float:
    """One after another; returns how long to wait for the next time. What somebody else has locked stays to be done."""
    try:
        for _ in range(MOST_IN_A_ROUND):
            if await webhooks.look_after(connection) is None:
                return UNTIL_CALLED
    except db.CONTENDED:
        pass
    return AGAIN_SECONDS


async def recheck_endpoints(pool: db.Database, settings: Settings) -> None:
    found = await webhooks.recheck(pool)
    if found:
        log.warning("deliveries of %d endpoints stood still though one at least could go; it does now", found)
    bounds = {"held_most": settings.webhook_held_most, "held_days": settings.webhook_held_days}
    for _ in range(MOST_IN_A_ROUND):  # they may come faster than a page a minute
        if not await webhooks.give_up_held(pool, **bounds):
            break
