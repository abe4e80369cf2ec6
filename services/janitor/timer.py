"""The janitor's own timer: sleeps until the earliest lease may have ended, with or without RabbitMQ."""

import asyncio
import logging
import time
from collections.abc import Callable

from windlass.services.janitor.idleness import busy, look_around
from windlass.services.janitor.premises import Premises
from windlass.services.janitor.rhythms import Rhythm
from windlass.services.janitor.table import duties_of
from windlass.services.janitor.wall import EXPECTED, perform_all
from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.store.operating import reports

log = logging.getLogger("janitor")

AGAIN_SECONDS = 0.5
SHORTEST_SLEEP_SECONDS = 0.05


class Timer:
    """Says at every look that this janitor is there, and judges nobody soon after Postgres was out of reach."""

    def __init__(
        self, premises: Premises, instance_id: str, *, on_answer: Callable[[], None], call: Callable[[str], None]
    ) -> None:
        self._premises = premises
        self._instance_id = instance_id
        self._on_answer = on_answer
        self._call = call
        self._asked_at = self._judges_from = 0.0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            self._asked_at = time.monotonic()
            sleep = await self._look()
            self._mind_the_gap()
            await asyncio.sleep(sleep)

    async def _look(self) -> float:
        """Whatever goes wrong, there is a next time; returns how long to sleep until then."""
        try:
            return await self._recover()
        except EXPECTED as error:
            log.warning("sweeping again soon (%s)", words_of(error))
            self._judges_from = time.monotonic() + self._premises.patience_seconds
        except Exception:
            log.exception("the timer failed; sweeping again soon")
        return AGAIN_SECONDS

    def _mind_the_gap(self) -> None:
        """An answer that took long: Postgres was out of reach, for the workers as well. Let the living renew before the
        dead are counted."""
        if time.monotonic() - self._asked_at > self._premises.patience_seconds:
            self._judges_from = time.monotonic() + self._premises.patience_seconds

    async def _recover(self) -> float:
        """Takes back what is stale, calls for what nobody has called for, and returns how long to sleep."""
        at = self._premises
        details = {"unaccounted_tasks": at.unaccounted, "workflow_drift": at.workflow_drift}
        at.heard_at = await reports.say(at.pool, "janitor", self._instance_id, healthy=True, details=details)
        self._on_answer()
        self._mind_the_gap()
        wait = self._judges_from - time.monotonic()
        if wait > 0:
            return wait
        look = await look_around(at)
        for duty in busy(duties_of(Rhythm.CALL), look):
            self._call(duty.name)
        if due := busy(duties_of(Rhythm.LEASES), look):
            for outcome in await perform_all(due, at):
                if isinstance(outcome.error, db.AWAY_OR_BUSY):
                    raise outcome.error
            look = await look_around(at)
        next_expiry = look.lease_seconds
        # An outage that falls between two looks must be too short to cost anybody a lease.
        longest = min(at.settings.safety_poll_seconds, at.settings.lease_seconds / 2)
        return longest if next_expiry is None else min(max(next_expiry, SHORTEST_SLEEP_SECONDS), longest)
