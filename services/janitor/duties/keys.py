"""Concurrency keys: parked tasks go on where an end could not see to it, and when a limit was raised or taken away."""

from collections.abc import Iterable

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared.db import CONTENDED, Database
from windlass.shared.store.flow_control import keys

AGAIN_SECONDS = 0.1
"""When somebody was in the way."""


async def recheck_keys(connection: Database, called_by: Iterable[str]) -> float:
    """Of the providers that were called by, and then of all; returns how long to wait for the next time."""
    try:
        hindered = [await _recheck(connection, provider) for provider in (*sorted(called_by), None)]
    except CONTENDED:
        return AGAIN_SECONDS
    return AGAIN_SECONDS if any(hindered) else UNTIL_CALLED


async def _recheck(connection: Database, provider: str | None) -> bool:
    """Page by page, and each page until nothing more may go on; whether somebody was in the way."""
    hindered, after = False, None
    while True:
        page = await keys.recheck(connection, provider, after)
        hindered = hindered or page.hindered
        if page.released and not page.hindered:
            continue
        if page.reached is None:
            return hindered
        after = page.reached
