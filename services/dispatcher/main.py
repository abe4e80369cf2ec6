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
from windlass.services.dispatcher.calls import EVERYBODY, Calls
from windlass.services.dispatcher.credit import OUT_SECONDS, CreditOut
from windlass.services.dispatcher.dispatch import dispatch_due, ring
from windlass.services.dispatcher.foresight import Foresight
from windlass.services.dispatcher.publisher import Doorbell, Publisher
from windlass.shared import db, tracing
from windlass.shared.backoff import Backoff
from windlass.shared.errors import words_of
from windlass.shared.metrics import serving
from windlass.shared.metrics.services import BROKER_BLOCKED, BROKER_CONNECTED, DOORBELLS
from windlass.shared.process import logs
from windlass.shared.process.lifetime import until_set, until_told_to_stop
from windlass.shared.process.pulse import Pulse
from windlass.shared.settings import Settings, provider_of
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
        self.instance_id = f"{socket.gethostname()}-{os.getpid()}"
        self.calls = Calls()
        self.credit = CreditOut()
        self.foresight = Foresight()
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
            channels: dict[str, Callable[[str], None]] = {
                "windlass_dispatch": self.calls.hear,
                "windlass_due": lambda queue: self._hear_of_one(queue, tasks),
                "windlass_credit": self._hear_of_credit,
            }
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
                self.calls.call_for_all()  # whom this look was meant for is forgotten
                await asyncio.sleep(pause)
                continue
            next_at = min([self._all_at, *self._again_at.values()])
            await until_set(self.calls.heard, at_most_seconds=max(0.0, next_at - time.monotonic()))
            now = time.monotonic()
            self.calls.call([name for name, at in self._again_at.items() if at <= now])
            if now >= self._all_at:
                self.calls.call_for_all()

    async def _look(self) -> None:
        """At those who were called for. When to look again by itself is found out by the look, or, for all of them,
        before it: nothing that becomes due meanwhile is missed."""
        named = self.calls.take()
        if named is None:
            seconds, safety = await providers.seconds_to_next_look(self.pool), self.settings.safety_poll_seconds
            self._all_at = time.monotonic() + (safety if seconds is None else min(max(0.0, seconds), safety))
        seen = await dispatch_due(
            self.pool,
            self.publisher,
            self.backlog,
            self.credit,
            self.settings,
            foresight=self.foresight,
            only=named,
        )
        now = time.monotonic()
        for name in list(self._again_at) if named is None else named:
            self._again_at.pop(name, None)
        # Where something is due, it is looked again when what was rung for should have started.
        self._again_at |= dict.fromkeys(seen.waiting, now + OUT_SECONDS)
        for name, seconds in seen.next_in.items():
            self._again_at[name] = min(now + max(0.0, seconds), self._again_at.get(name, math.inf))
        if self.calls.heard.is_set():
            await asyncio.sleep(GATHER_SECONDS if seen.anybody_idle else BUSY_GATHER_SECONDS)

    def _hear_of_one(self, queue: str, tasks: asyncio.TaskGroup) -> None:
        """A task is due that nobody has looked at; if the last look has foreseen it, nobody has to."""
        if doorbell := self.foresight.take(queue):
            self.calls.answer(provider_of(queue))
            tasks.create_task(self._ring_unseen(doorbell))

    async def _ring_unseen(self, doorbell: Doorbell) -> None:
        """Who starts it says so, which calls for the next look. Should nobody, it is looked at after a while."""
        provider = provider_of(doorbell.queue)
        if not await ring(self.publisher, [doorbell], self.credit):
            await asyncio.sleep(OUT_SECONDS)
        if not self.foresight.has_seen(provider):
            self.calls.call([provider])

    def _hear_of_credit(self, payload: str) -> None:
        """Workers have used so many starts of each of these queues, and may have more to do there."""
        if payload in {"", EVERYBODY}:
            return
        for line in payload.split("\n"):
            queue, _, starts = line.rpartition(" ")
            self.credit.used(queue, int(starts))
            self.calls.call([provider_of(queue)])

    async def _report(self) -> None:
        """Says how it is and how the broker is: `/health` repeats it."""
        while True:
            self.publisher.changed.clear()
            state = self.publisher.state
            if state == "connected":
                self.calls.call_for_all()  # what could not be rung is still due
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
