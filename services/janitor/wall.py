"""The wall around each duty: it is logged, timed and counted, and one that raises costs nobody else their turn."""

import logging
import time
from collections.abc import Iterable
from dataclasses import dataclass

from windlass.services.janitor.premises import Premises
from windlass.services.janitor.rhythms import Rhythm
from windlass.services.janitor.table import DUTIES, Duty
from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.metrics.services import JANITOR_DUTY_FAILURES, JANITOR_DUTY_SECONDS, JANITOR_LAST_SUCCESS

log = logging.getLogger("janitor")

EXPECTED = db.AWAY_OR_BUSY + db.NOT_MIGRATED
"""Nobody's mistake, and over by itself: a line tells enough."""


@dataclass(frozen=True)
class Outcome:
    """What became of a duty: the error that it ended by, or when it wants to look again."""

    error: Exception | None = None
    again_in_seconds: float | None = None


def begin() -> None:
    """What has not failed has failed 0 times, and what was never done is late from now on. Only the timer's duties are
    silent until they are done: it is the absence of the stale sweep that wakes somebody."""
    for duty in DUTIES:
        JANITOR_DUTY_FAILURES.labels(duty.name).inc(0)
        if duty.rhythm != Rhythm.LEASES:
            JANITOR_LAST_SUCCESS.labels(duty.name, duty.rhythm).set_to_current_time()


async def perform(duty: Duty, premises: Premises) -> Outcome:
    started = time.monotonic()
    try:
        again_in_seconds = await duty.do(premises)
    except Exception as error:  # noqa: BLE001 - recorded by `tell`
        outcome = Outcome(error=error)
        JANITOR_DUTY_FAILURES.labels(duty.name).inc()
        tell(duty, error)
    else:
        outcome = Outcome(again_in_seconds=again_in_seconds)
        JANITOR_LAST_SUCCESS.labels(duty.name, duty.rhythm).set_to_current_time()
    seconds = time.monotonic() - started
    JANITOR_DUTY_SECONDS.labels(duty.name).observe(seconds)
    log.debug("duty %s: %s after %.3f s", duty.name, "done" if outcome.error is None else "failed", seconds)
    return outcome


def found_idle(duty: Duty) -> None:
    """Somebody has looked, and there was nothing to do: as good as done."""
    JANITOR_LAST_SUCCESS.labels(duty.name, duty.rhythm).set_to_current_time()


async def perform_all(duties: Iterable[Duty], premises: Premises) -> list[Outcome]:
    """One after another, whatever becomes of each."""
    return [await perform(duty, premises) for duty in duties]


def tell(duty: Duty, error: Exception) -> None:
    if isinstance(error, EXPECTED):
        log.warning("duty %s: again next time (%s)", duty.name, words_of(error))
    else:
        log.error("duty %s failed; the others go on", duty.name, exc_info=error)
