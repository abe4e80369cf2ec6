"""The dispatcher's process, the only publisher: wakes on NOTIFY, on the next due row and, to be safe, now and then."""

import asyncio
import logging
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress

import pika.exceptions
import uvloop

from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.calls import Calls
from windlass.services.dispatcher.dispatch import FIRST_CHECK_SECONDS, dispatch_due, ring_again
from windlass.services.dispatcher.publisher import Publisher
from windlass.shared import db, tracing
from windlass.shared.backoff import Backoff
from windlass.shared.metrics import serving
from windlass.shared.metrics.services import BROKER_BLOCKED, BROKER_CONNECTED, DOORBELLS, DOORBELLS_AGAIN
from windlass.shared.process import logs
from windlass.shared.process.lifetime import until_set, until_told_to_stop
from windlass.shared.process.pulse import Pulse
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit
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
        self.backlog = RetryBacklog(settings.lanes)
        self.instance_id = f"{socket.gethostname()}-{os.getpid()}"
        self.calls = Calls()
        self._all_at = 0.0
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
            channels: dict[str, Callable[[str], None]] = {"windlass_dispatch": self.calls.hear}
            tasks.create_task(db.Listener(self.settings, "dispatcher", channels).run())
            tasks.create_task(self._report())
            tasks.create_task(self._dispatch())

    async def _dispatch(self) -> None:
        backoff = Backoff(first_seconds=0.1, longest_seconds=2)
        while True:
            await self.publisher.takes_messages.wait()
            try:
                looked_at = await self._until_quiet()
                if looked_at is None:  # which comes no later than the first doorbell that is to be checked
                    await ring_again(self.pool, self.publisher, self.settings)
                await self._plan(looked_at)
                backoff.renew()
            except TROUBLE as error:
                pause = backoff.pause()
                log.warning("dispatching again in %.1f s (%s)", pause, error or type(error).__name__)
                self.calls.call_for_all()  # whom this look was meant for is forgotten
                await asyncio.sleep(pause)
                continue
            await until_set(self.calls.heard, at_most_seconds=max(0.0, self._all_at - time.monotonic()))
            if time.monotonic() >= self._all_at:
                self.calls.call_for_all()

    async def _until_quiet(self) -> set[str] | None:
        """Dispatches until nothing calls any more, or it is time to look after the doorbells that are out; returns
        whom it has looked at."""
        until = time.monotonic() + FIRST_CHECK_SECONDS
        looked_at: set[str] | None = set()
        while self.publisher.takes_messages.is_set() and time.monotonic() < until:
            named = self.calls.take()
            looked_at = None if looked_at is None or named is None else looked_at | named
            self.calls.call(await dispatch_due(self.pool, self.publisher, self.backlog, self.settings, only=named))
            if not self.calls.heard.is_set():
                break
            await asyncio.sleep(GATHER_SECONDS)
        return looked_at

    async def _plan(self, looked_at: set[str] | None) -> None:
        """When to look at all of them by itself. Nothing has become due sooner at those that nobody called for."""
        safety = self.settings.safety_poll_seconds
        seconds = await providers.seconds_to_next_look(
            self.pool, first_check_seconds=FIRST_CHECK_SECONDS, at_most_seconds=safety, only=looked_at
        )
        at = time.monotonic() + (safety if seconds is None else min(seconds, safety))
        self._all_at = at if looked_at is None else min(at, self._all_at)

    async def _report(self) -> None:
        """Says how it is and how the broker is: `/health` repeats it."""
        while True:
            self.publisher.changed.clear()
            state = self.publisher.state
            if state == "connected":
                self.calls.call_for_all()  # what could not be rung was given back, and is due
            said = {"blocked_for": self.publisher.blocked_for, "broker_version": self.publisher.version}
            details = {"broker": state, **said}
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
    settings = settings_or_exit()
    logs.start(settings, "dispatcher")
    tracing.start(settings, "dispatcher")
    serving.serve(settings, "dispatcher")
    uvloop.run(serve(settings))
    tracing.stop()
