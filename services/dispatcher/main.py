"""The dispatcher's process, the only publisher: wakes on NOTIFY, on the next due row and, to be safe, now and then."""

import asyncio
import logging
import math
import os
import socket
import time
from collections.abc import Callable
from contextlib import suppress

import pika.exceptions
import uvloop

from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.dispatch import AGAIN_SECONDS, Reminders, dispatch_due
from windlass.services.dispatcher.publisher import Publisher
from windlass.shared import db, tracing
from windlass.shared.backoff import Backoff
from windlass.shared.errors import words_of
from windlass.shared.metrics import serving
from windlass.shared.metrics.services import BROKER_BLOCKED, BROKER_CONNECTED, DOORBELLS
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

BUSY_GATHER_SECONDS = 0.1
"""While nobody has a place free, doorbells are only for later: more than ten looks a second would be wasted."""

TROUBLE: tuple[type[BaseException], ...] = (*db.AWAY_OR_BUSY, pika.exceptions.AMQPError)


class Dispatcher:
    """Several of these side by side ring too often by their number, and that is all."""

    def __init__(self, settings: Settings, pool: db.Database) -> None:
        self.settings = settings
        self.pool = pool
        self.publisher = Publisher(settings)
        self.backlog = RetryBacklog(settings.lanes)
        self.reminders = Reminders()
        self.instance_id = f"{socket.gethostname()}-{os.getpid()}"
        self._heard = asyncio.Event()
        self._named: set[str] = set()
        """The providers to look at next."""
        self._is_for_all = True
        self._all_at = 0.0
        self._again_at: dict[str, float] = {}
        self.pulse = Pulse(settings)
        for queue in settings.all_queues():
            for result in ("confirmed", "missed"):
                DOORBELLS.labels(queue, result)
        BROKER_CONNECTED.set_function(lambda: self.publisher.state != "away")
        BROKER_BLOCKED.set_function(lambda: self.publisher.state == "blocked")

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self.pulse.run())
            await db.until_available("dispatcher", lambda: providers.configure(self.pool, self.settings))
            self.pulse.is_ready = True
            tasks.create_task(self.publisher.keep_connected())
            channels: dict[str, Callable[[str], None]] = {"windlass_dispatch": self.hear}
            tasks.create_task(db.Listener(self.settings, "dispatcher", channels).run())
            tasks.create_task(self._report())
            tasks.create_task(self._dispatch())

    async def _dispatch(self) -> None:
        backoff = Backoff(first_seconds=0.1, longest_seconds=2)
        while True:
            await self.publisher.takes_messages.wait()
            try:
                await self._look()
                backoff.renew()
            except TROUBLE as error:
                pause = backoff.pause()
                log.warning("dispatching again in %.1f s (%s)", pause, words_of(error))
                self._call_for_all()  # the names that this look was meant for are forgotten
                await asyncio.sleep(pause)
                continue
            next_at = min([self._all_at, *self._again_at.values()])
            await until_set(self._heard, at_most_seconds=max(0.0, next_at - time.monotonic()))
            now = time.monotonic()
            self._named.update(name for name, at in self._again_at.items() if at <= now)
            if now >= self._all_at:
                self._call_for_all()

    def hear(self, payload: str) -> None:
        """A notice of `wake_dispatcher` names providers, or none for all of them. So does a listener that may have
        missed some."""
        if payload.strip("*"):
            self._named.update(payload.split("\n"))
            self._heard.set()
        else:
            self._call_for_all()

    def _call_for_all(self) -> None:
        self._is_for_all = True
        self._heard.set()

    async def _look(self) -> None:
        """Looks at the providers that were named since the last look. When to look at all of them again is asked before
        the look, so that nothing that becomes due meanwhile is missed."""
        named = None if self._is_for_all else self._named
        self._is_for_all, self._named = False, set()
        self._heard.clear()
        if named is None:
            seconds, safety = await providers.seconds_to_next_look(self.pool), self.settings.safety_poll_seconds
            self._all_at = time.monotonic() + (safety if seconds is None else min(max(0.0, seconds), safety))
        seen = await dispatch_due(
            self.pool,
            self.publisher,
            self.backlog,
            self.reminders,
            heard_within_seconds=self.settings.lease_seconds,
            only=named,
        )
        now = time.monotonic()
        for name in list(self._again_at) if named is None else named:
            self._again_at.pop(name, None)
        self._again_at |= dict.fromkeys(seen.waiting, now + AGAIN_SECONDS)
        for name, seconds in seen.next_in.items():
            self._again_at[name] = min(now + max(0.0, seconds), self._again_at.get(name, math.inf))
        if self._heard.is_set():
            await asyncio.sleep(GATHER_SECONDS if seen.anybody_idle else BUSY_GATHER_SECONDS)

    async def _report(self) -> None:
        """Says how it is and how the broker is: `/health` repeats it."""
        while True:
            self.publisher.changed.clear()
            state = self.publisher.state
            if state == "connected":
                self._call_for_all()  # what could not be rung for is still due
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
    settings = settings_or_exit("database_url", "amqp_url")
    logs.start(settings, "dispatcher")
    tracing.start(settings, "dispatcher")
    serving.serve(settings, "dispatcher")
    uvloop.run(serve(settings))
    tracing.stop()
