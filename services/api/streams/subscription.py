"""What a stream waits by: a flag, and how far it has read."""

import asyncio
import random
from contextlib import suppress

from windlass.shared.store.reading.commit_order import Position


class Subscription:
    """One stream's flag, and how far it has read: the `seq` of its one task, or a position among everybody's."""

    __slots__ = ("_flag", "seen")

    def __init__(self) -> None:
        self._flag = asyncio.Event()
        self.seen: int | Position = 0

    def wake(self) -> None:
        self._flag.set()

    def clear(self) -> None:
        """Before each read: what comes during the read will set it again."""
        self._flag.clear()

    async def news(self, within_seconds: float) -> bool:
        """Whether there may be something new; not, when the time is up."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await self._flag.wait()
        return self._flag.is_set()

    async def bear_an_outage(self) -> None:
        """A moment in which Postgres may come back, or have room; each stream's is another, so that they do not all
        ask at once."""
        await self.news(random.uniform(1, 3))  # noqa: S311 - spreads repetitions
