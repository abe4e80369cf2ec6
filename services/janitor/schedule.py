"""Periodiq's process: rings for the janitor's duties at their times, in the `janitor` queue."""

import os
import signal
import sys
from collections.abc import Callable

import dramatiq
import periodiq

from windlass.shared.broker import DoorbellBroker
from windlass.shared.process import kernel, logs
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit

QUEUE = "janitor"
DUTIES = {"sweep": "* * * * *", "statistics": "7 * * * *"}


def boot(settings: Settings, perform: Callable[[str], None]) -> DoorbellBroker:
    """A broker with an actor for each duty; late and double rings are harmless, old ones are dropped."""
    broker = DoorbellBroker(settings, middleware=[periodiq.PeriodiqMiddleware(skip_delay=30)])
    for duty, times in DUTIES.items():
        declare = dramatiq.actor(actor_name=duty, queue_name=QUEUE, broker=broker, periodic=periodiq.cron(times))
        declare(_performing(duty, perform))
    return broker


def _performing(duty: str, perform: Callable[[str], None]) -> Callable[[], None]:
    return lambda: perform(duty)


def perform_elsewhere(_duty: str) -> None:
    """This process only rings; whoever consumes the queue does the work."""


def main() -> None:
    kernel.die_with_parent(int(sys.argv[1]), signal.SIGTERM)
    settings = settings_or_exit()
    logs.start(settings, "schedule")
    broker = boot(settings, perform_elsewhere)
    scheduler = periodiq.Scheduler(actors=list(broker.actors.values()))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    scheduler.schedule()
    scheduler.loop()


if __name__ == "__main__":
    main()
