"""The reconciler: counts the tasks that nobody is going to move. It must find none, and says so loudly when it does."""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.store.operating import reconciliation

log = logging.getLogger("janitor")


LOOK_AGAIN_SECONDS = 5.0
"""A slot that became free a moment ago looks like one that nobody fills."""


async def count_unaccounted(
    db: Database,
    settings: Settings,
    *,
    blocked_after: UUID | None = None,
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> int:
    look = functools.partial(
        reconciliation.count_unaccounted,
        db,
        after_seconds=2 * (settings.lease_seconds + settings.safety_poll_seconds),
        heard_within_seconds=settings.lease_seconds,
        blocked_after=blocked_after,
    )
    found = await look()
    if any(found.values()):
        await pause(LOOK_AGAIN_SECONDS)
        again = await look()
        found = {owner: min(number, again[owner]) for owner, number in found.items()}
    for owner, number in found.items():
        if number:
            log.error("%d tasks are unaccounted for: the %s should have moved them", number, owner)
    return sum(found.values())
