"""What wakes the janitor for schedules: the time that the next one is due, and those who call for one."""

import asyncio
import time
from uuid import UUID

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared.process.lifetime import until_set


class NextDue:
    """It asks nobody: the timer says at each of its looks when the next schedule is due, and calls come by NOTIFY."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._called: set[UUID] = set()
        self._may_have_missed_calls = False
        self._changed = asyncio.Event()

    def in_seconds(self, seconds: float | None) -> None:
        at = None if seconds is None else time.monotonic() + seconds
        is_sooner = at is not None and (self._at is None or at < self._at)
        self._at = at
        if is_sooner:
            self._changed.set()

    def called(self, schedule_id: UUID) -> None:
        self._called.add(schedule_id)
        self._changed.set()

    def missed_calls(self) -> None:
        """Whoever listens has listened again only now."""
        self._may_have_missed_calls = True
        self._changed.set()

    def take_called(self) -> tuple[set[UUID], bool]:
        """Which schedules, and whether there may have been others."""
        taken = self._called, self._may_have_missed_calls
        self._called, self._may_have_missed_calls = set(), False
        return taken

    async def wait(self) -> None:
        """Until something is due or called for."""
        while not self._called and not self._may_have_missed_calls:
            self._changed.clear()
            left = UNTIL_CALLED if self._at is None else self._at - time.monotonic()
            if left <= 0:
                return
            await until_set(self._changed, at_most_seconds=left)
