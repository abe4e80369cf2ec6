"""Periodiq's process: rings the janitor's duties once a minute, in the `janitor` queue."""

import os
import signal
import sys
from collections.abc import Callable

import dramatiq
import periodiq

from shared import kernel, logs
from shared.broker import DoorbellBroker
from shared.settings import Settings

QUEUE = "janitor"
EVERY_MINUTE = "* * * * *"


def boot(settings: Settings, sweep: Callable[[], None]) -> DoorbellBroker:
    """A broker whose one actor runs every duty; late and double rings are harmless, old ones are dropped."""
    broker = DoorbellBroker(settings, middleware=[periodiq.PeriodiqMiddleware(skip_delay=30)])
    declare = dramatiq.actor(actor_name="sweep", queue_name=QUEUE, broker=broker, periodic=periodiq.cron(EVERY_MINUTE))
    declare(sweep)
    return broker


def sweep_elsewhere() -> None:
    """This process only rings; whoever consumes the queue sweeps."""


def main() -> None:
    kernel.die_with_parent(int(sys.argv[1]), signal.SIGTERM)
    settings = Settings()
    logs.start(settings, "schedule")
    broker = boot(settings, sweep_elsewhere)
    scheduler = periodiq.Scheduler(actors=list(broker.actors.values()))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    scheduler.schedule()
    scheduler.loop()


if __name__ == "__main__":
    main()
