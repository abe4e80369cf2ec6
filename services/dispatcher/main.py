"""The dispatcher's process, the only publisher: wakes on NOTIFY, on the next due row and, to be safe, now and then."""

import asyncio
import logging
import os
import socket
import time
from contextlib import suppress

import pika.exceptions
import uvloop

from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.dispatch import FIRST_CHECK_SECONDS, dispatch_due, ring_again
from windlass.services.dispatcher.publisher import Publisher
from windlass.shared import db, tracing
from windlass.shared.metrics import serving
from windlass.shared.metrics.services import BROKER_BLOCKED, BROKER_CONNECTED, DOORBELLS, DOORBELLS_AGAIN
from windlass.shared.process import logs
from windlass.shared.process.lifetime import until_set, until_told_to_stop
from windlass.shared.process.pulse import Pulse
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import providers
from windlass.shared.store.operating import reports

log = logging.getLogger("dispatcher")

GATHER_SECONDS = 0.003
"""Under load, calls that come meanwhile are answered together: a round costs about the same for one as for ten."""

TROUBLE: tuple[type[BaseException], ...] = (*db.AWAY_OR_BUSY, pika.exceptions.AMQPError)


class Dispatcher:
    """Two of these side by side are safe: rows are reserved under the provider's lock."""

    def __init__(self, settings: Settings, pool: db.Database) -> None:
        self.settings = settings
        self.pool = pool
        self.publisher = Publisher(settings)
        self.backlog = RetryBacklog()
        self.instance_id = f"{socket.gethostname()}-{os.getpid()}"
        self._wake = asyncio.Event()
        self.pulse = Pulse(settings)
        for queue in settings.all_queues():
            DOORBELLS_AGAIN.labels(queue)
            for result in ("confirmed", "given_back"):
                DOORBELLS.labels(queue, result)
        BROKER_CONNECTED.set_function(lambda: self.publisher.state != "away")
        BROKER_BLOCKED.set_function(lambda: self.publisher.state == "blocked")

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pulse.run())
            await db.until_available("dispatcher", lambda: providers.configure(self.pool, self.settings))
            self.pulse.is_ready = True
            tasks.create_task(self.publisher.keep_connected())
            channels = {"windlass_dispatch": lambda _payload: self._wake.set()}
            tasks.create_task(db.Listener(self.settings, "dispatcher", channels).run())
            tasks.create_task(self._report())
            tasks.create_task(self._dispatch())

    async def _dispatch(self) -> None:
        pause = 0.1
        while True:
            await self.publisher.takes_messages.wait()
            try:
                await self._until_quiet()
                await ring_again(self.pool, self.publisher, self.settings)
                sleep = await providers.seconds_to_next_look(
                    self.pool,
                    first_check_seconds=FIRST_CHECK_SECONDS,
                    at_most_seconds=self.settings.safety_poll_seconds,
                )
                pause = 0.1
            except TROUBLE as error:
                log.warning("dispatching again in %.1f s (%s)", pause, error or type(error).__name__)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 2.0)
                continue
            safety = self.settings.safety_poll_seconds
            await until_set(self._wake, at_most_seconds=safety if sleep is None else max(0.0, min(sleep, safety)))

    async def _until_quiet(self) -> None:
        """Dispatches until nothing calls any more, or it is time to look after the doorbells that are out."""
        until = time.monotonic() + FIRST_CHECK_SECONDS
        while self.publisher.takes_messages.is_set() and time.monotonic() < until:
            self._wake.clear()
            again = await dispatch_due(self.pool, self.publisher, self.backlog, self.settings)
            if not (again or self._wake.is_set()):
                return
            await asyncio.sleep(GATHER_SECONDS)

    async def _report(self) -> None:
        """Says how it is and how the broker is: `/health` repeats it."""
        while True:
            self.publisher.changed.clear()
            state = self.publisher.state
            if state == "connected":
                self._wake.set()  # what could not be rung was given back, and is due
            details = {"broker": state, "blocked_for": self.publisher.blocked_for}
            with suppress(*db.AWAY_OR_BUSY):
                await reports.say(
                    self.pool, "dispatcher", self.instance_id, healthy=state == "connected", details=details
                )
            await until_set(self.publisher.changed, at_most_seconds=self.settings.safety_poll_seconds)


async def serve(settings: Settings) -> None:
    pool = await db.open_pool(settings, "dispatcher", most=3)
    dispatcher = Dispatcher(settings, pool)
    await until_told_to_stop(dispatcher.run())
    with suppress(*db.AWAY_OR_BUSY):
        await reports.withdraw(pool, "dispatcher", dispatcher.instance_id)
    pool.terminate()
    log.info("stopped")


def main() -> None:
    settings = Settings()
    logs.start(settings, "dispatcher")
    tracing.start(settings, "dispatcher")
    serving.serve(settings, "dispatcher")
    uvloop.run(serve(settings))
    tracing.stop()
