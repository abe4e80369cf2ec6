"""Starts what schedules are due for, each in a transaction of its own."""

import asyncio
import logging
import random
from collections.abc import Iterable
from dataclasses import dataclass
from uuid import UUID

from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.features.handling import REPEATED
from windlass.shared.features.schedules import firing
from windlass.shared.process.lifetime import until_set
from windlass.shared.store.schedules.reading import Read

log = logging.getLogger("orchestrator")

AT_ONCE = 2
"""Schedules that are fired at the same time: however many are due, what else Postgres has to do goes on."""

MOST_READ = 200
LOOK_SECONDS = 15.0
"""A look finds what another process left behind, and what a restored database has."""

BUSY_SECONDS = 0.1
"""Other processes have all that is due."""

AWAY_SECONDS = 1.0
LONGEST_BACKOFF_SECONDS = 3600.0


@dataclass
class Failed:
    """A schedule that could not be fired: a defect, or a definition that nobody foresaw."""

    tries: int
    again_at: float


class Firing:
    """Any number of processes may fire: a schedule is locked, and its due time has one row."""

    def __init__(self, pool: db.Pool) -> None:
        self._pool = pool
        self._woken = asyncio.Event()
        self._failed: dict[UUID, Failed] = {}

    def wake(self, _payload: str = "") -> None:
        self._woken.set()

    async def run(self) -> None:
        """Sleeps until the next schedule is due, or until one was changed."""
        while True:
            self._woken.clear()
            try:
                pause = await self._fire_what_is_due()
            except db.AWAY_OR_BUSY + db.NOT_MIGRATED as error:
                log.warning("schedules_look_failed retry_in=%.1fs error=%s", AWAY_SECONDS, words_of(error))
                pause = AWAY_SECONDS
            await until_set(self._woken, at_most_seconds=pause)

    async def _fire_what_is_due(self) -> float:
        """Returns in how many seconds the next schedule is due."""
        while True:
            failed = self._backing_off()
            seconds = await firing.seconds_to_next(self._pool, without=failed)
            if seconds is None or seconds > 0:
                return LOOK_SECONDS if seconds is None else min(seconds, LOOK_SECONDS)
            rows = await firing.due_now(self._pool, without=failed, at_most=MOST_READ)
            random.shuffle(rows)  # several orchestrators read the same rows: each begins elsewhere
            left = iter(rows)
            fired = await asyncio.gather(*(self._fire_each(left) for _ in range(AT_ONCE)), return_exceptions=True)
            for each in fired:
                if isinstance(each, BaseException):
                    raise each
            if not any(fired):
                await asyncio.sleep(BUSY_SECONDS)

    async def _fire_each(self, rows: Iterable[Read]) -> bool:
        """Whether anything was decided here."""
        decided = [await self._fire(row) for row in rows]
        return any(decided)

    async def _fire(self, row: Read) -> bool:
        try:
            decided = await firing.fire(self._pool, firing.planned(row))
        except REPEATED as error:
            log.info("schedule_repeated schedule=%s error=%s", row.schedule_id, words_of(error))
            return False
        except Exception as error:
            if isinstance(error, db.UNAVAILABLE) and not isinstance(error, db.HELD_UP):
                raise
            log.exception("schedule_not_fired schedule=%s", row.schedule_id)
            tries = self._failed[row.schedule_id].tries + 1 if row.schedule_id in self._failed else 1
            seconds = min(2.0 ** min(tries, 12), LONGEST_BACKOFF_SECONDS)
            self._failed[row.schedule_id] = Failed(tries, asyncio.get_running_loop().time() + seconds)
            return False
        self._failed.pop(row.schedule_id, None)
        return bool(decided)

    def _backing_off(self) -> list[UUID]:
        now = asyncio.get_running_loop().time()
        return [schedule_id for schedule_id, each in self._failed.items() if each.again_at > now]
