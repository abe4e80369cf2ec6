"""Periodiq's process: rings for the janitor's duties at their times, in the `janitor` queue."""

import os
import signal
import sys
from collections.abc import Callable

import dramatiq
import periodiq

from windlass.services.janitor.rhythms import TIMES, Rhythm
from windlass.shared.broker import DoorbellBroker
from windlass.shared.process import kernel, logs
from windlass.shared.process.rabbitmq_lines import is_of_connection
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit

QUEUE = "janitor"


BROKER_AWAY = 75
"""How the process exits that could not ring."""


def boot(settings: Settings, answer: Callable[[Rhythm], None]) -> DoorbellBroker:
    """A broker with an actor for each rhythm; late and double rings are harmless, old ones are dropped."""
    broker = DoorbellBroker(settings, middleware=[periodiq.PeriodiqMiddleware(skip_delay=30)])
    for rhythm, times in TIMES.items():
        declare = dramatiq.actor(actor_name=str(rhythm), queue_name=QUEUE, broker=broker, periodic=periodiq.cron(times))
        declare(_answering(rhythm, answer))
    return broker


def _answering(rhythm: Rhythm, answer: Callable[[Rhythm], None]) -> Callable[[], None]:
    return lambda: answer(rhythm)


def answered_elsewhere(_rhythm: Rhythm) -> None:
    """This process only rings; whoever consumes the queue does the work."""


def main() -> None:
    kernel.die_with_parent(int(sys.argv[1]), signal.SIGTERM)
    settings = settings_or_exit("amqp_url")
    logs.start(settings, "schedule")
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    try:
        ring(boot(settings, answered_elsewhere))
    except Exception as error:
        # The janitor's own consumer says so, once.
        if not isinstance(error, dramatiq.errors.ConnectionError) and not is_of_connection(error):
            raise
        raise SystemExit(BROKER_AWAY) from None


def ring(broker: DoorbellBroker) -> None:
    scheduler = periodiq.Scheduler(actors=list(broker.actors.values()))
    scheduler.schedule()
    scheduler.loop()


if __name__ == "__main__":
    main()
