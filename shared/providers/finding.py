"""An order whose answer was lost, looked for in a provider's list by its prompt and its time."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Self

from windlass.shared.providers.base import CannotTell, Found, NotThere

MOST_PAGES = 20
LOOK_AGAIN_SECONDS = 3.0
CLOCKS_DIFFER = timedelta(seconds=60)
"""How far the provider's clock may be from ours: what it took this long before the intent might still be ours."""


@dataclass(frozen=True)
class Listed:
    """A job as the provider lists it."""

    job_id: str
    prompt: str
    created_at: datetime

    @classmethod
    def of(cls, job_id: object, prompt: object, created_at: str) -> Self:
        """Times without a zone are UTC: who does not name it means that one."""
        at = datetime.fromisoformat(created_at)
        return cls(str(job_id), str(prompt), at if at.tzinfo else at.replace(tzinfo=UTC))


Page = Callable[[int], Awaitable[list[Listed]]]
"""The list's pages by number, newest job first; behind the last one they are empty."""


async def look_until_settled(
    page: Page, *, prompt: str, intended_at: datetime, settled_seconds: float
) -> Found | NotThere | CannotTell:
    """An answer can be lost while the order is still on its way: that it is not there is said only when it has had
    the time to turn up."""
    settled_at = intended_at + timedelta(seconds=settled_seconds)
    while True:
        is_last_look = datetime.now(UTC) >= settled_at
        found = await look(page, prompt=prompt, intended_at=intended_at)
        if is_last_look or not isinstance(found, NotThere):
            return found
        left = (settled_at - datetime.now(UTC)).total_seconds()
        await asyncio.sleep(min(max(left, 0), LOOK_AGAIN_SECONDS))


async def look(page: Page, *, prompt: str, intended_at: datetime) -> Found | NotThere | CannotTell:
    """One job with the prompt since the intent is ours. A second one, or one from shortly before, which is ours if the
    clocks differ and somebody else's if not, leaves it open."""
    # Providers write milliseconds, and cut off what is below.
    intended_at = intended_at.replace(microsecond=intended_at.microsecond // 1000 * 1000)
    earliest = intended_at - CLOCKS_DIFFER
    alike: list[Listed] = []
    for number in range(MOST_PAGES):
        listed = await page(number)
        times = [job.created_at for job in listed]
        if times != sorted(times, reverse=True):
            return CannotTell()
        alike += [job for job in listed if job.created_at >= earliest and job.prompt.strip() == prompt.strip()]
        if not listed or times[-1] < earliest:
            break
    else:
        return CannotTell()
    if not alike:
        return NotThere()
    is_ours = len(alike) == 1 and alike[0].created_at >= intended_at
    return Found(alike[0].job_id) if is_ours else CannotTell()
