"""The janitor's process: recovers what its owner left behind, on its own timer and whenever periodiq rings."""

import asyncio
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any
from uuid import UUID

import dramatiq

from windlass.services.janitor.duties.blocked import recheck_blocked
from windlass.services.janitor.duties.breakers import look_after_breakers
from windlass.services.janitor.duties.dependents import Settler
from windlass.services.janitor.duties.expired import bury_expired
from windlass.services.janitor.duties.rates import forget_expired_rates
from windlass.services.janitor.duties.reconciler import count_unaccounted
from windlass.services.janitor.duties.stale import recover_stale
from windlass.services.janitor.duties.statistics import keep_statistics
from windlass.services.janitor.duties.submission_keys import forget_expired_keys
from windlass.services.janitor.duties.tallies import fold_tallies, mend_tallies
from windlass.services.janitor.duties.texts import sort_in_new_texts
from windlass.services.janitor.duties.workers import lose_silent_workers
from windlass.services.janitor.metrics import performing
from windlass.services.janitor.schedule import boot
from windlass.shared import db
from windlass.shared.broker import threads_live
from windlass.shared.metrics import serving
from windlass.shared.process import logs
from windlass.shared.process.lifetime import until_told_to_stop
from windlass.shared.process.pulse import Pulse
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.operating import reports

log = logging.getLogger("janitor")


class Janitor:
    """Any number may run: every sweep is guarded and skips rows that somebody else has locked."""

    def __init__(self, settings: Settings, pool: db.Database) -> None:
        self.settings = settings
        self.pool = pool
        self.instance_id = f"{socket.gethostname()}-{os.getpid()}"
        self._asked_at = self._judges_from = 0.0
        self._patience_seconds = 2 * settings.heartbeat_seconds
        self._unaccounted = 0
        self._rechecked_to: UUID | None = None
        self._settler = Settler(settings)
        self._worker: dramatiq.Worker | None = None
        self.pulse = Pulse(settings, lives=lambda: self._worker is None or threads_live(self._worker))

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self.pulse.run())
            group.create_task(self._keep_time())
            group.create_task(self._settler.run())
            group.create_task(self._answer_rings())
            group.create_task(self._keep_scheduling())

    async def sweep(self) -> None:
        """The duties that belong to every minute; periodiq rings for them."""
        with performing("sweep"):
            page = self._rechecked_to
            self._rechecked_to = await recheck_blocked(self.pool, page)
            await lose_silent_workers(self.pool, self.settings)
            await look_after_breakers(self.pool, self.settings)
            await forget_expired_keys(self.pool)
            await forget_expired_rates(self.pool)
            await fold_tallies(self.pool)
            await sort_in_new_texts(self.pool)
            self._unaccounted = await count_unaccounted(self.pool, self.settings, blocked_after=page)

    async def keep_figures(self) -> None:
        """The day's, every hour."""
        with performing("statistics"):
            await keep_statistics(self.pool)
            await mend_tallies(self.pool)

    async def _keep_time(self) -> None:
        """The sweep of what is stale or expired, with or without RabbitMQ: sleeps until the earliest lease runs out."""
        while True:
            self._asked_at = time.monotonic()
            try:
                sleep = await self._recover()
            except db.AWAY_OR_BUSY as error:
                log.warning("sweeping again soon (%s)", error or type(error).__name__)
                self._judges_from = time.monotonic() + self._patience_seconds
                sleep = 0.5
            self._mind_the_gap()
            await asyncio.sleep(sleep)

    def _mind_the_gap(self) -> None:
        """An answer that took long: Postgres was out of reach, for the workers as well. Let the living renew before the
        dead are counted."""
        if time.monotonic() - self._asked_at > self._patience_seconds:
            self._judges_from = time.monotonic() + self._patience_seconds

    async def _recover(self) -> float:
        """Takes back what is stale, and returns how long to sleep."""
        details = {"unaccounted_tasks": self._unaccounted}
        heard_at = await reports.say(self.pool, "janitor", self.instance_id, healthy=True, details=details)
        self.pulse.is_ready = True
        self._mind_the_gap()
        wait = self._judges_from - time.monotonic()
        if wait > 0:
            return wait
        with performing("stale"):
            await recover_stale(self.pool, heard_at=heard_at, patience_seconds=self._patience_seconds)
            await bury_expired(self.pool)
        next_expiry = await tasks.seconds_to_next_expiry(self.pool)
        # An outage that falls between two looks must be too short to cost anybody a lease.
        longest = min(self.settings.safety_poll_seconds, self.settings.lease_seconds / 2)
        return longest if next_expiry is None else min(max(next_expiry, 0.05), longest)

    async def _answer_rings(self) -> None:
        """Consumes the `janitor` queue with one Dramatiq thread, which hands each duty to this loop."""
        loop = asyncio.get_running_loop()

        def perform(duty: str) -> None:
            asyncio.run_coroutine_threadsafe(duties[duty](), loop).result()

        duties: dict[str, Callable[[], Coroutine[Any, Any, None]]] = {
            "sweep": self.sweep,
            "statistics": self.keep_figures,
        }
        worker = dramatiq.Worker(boot(self.settings, perform), worker_threads=1)
        worker.queue_prefetch = 1
        worker.start()
        self._worker = worker
        try:
            await asyncio.Event().wait()
        finally:
            self._worker = None
            for thread in worker.workers:
                thread.stop()
            for consumer in worker.consumers.values():
                consumer.stop()

    async def _keep_scheduling(self) -> None:
        """Periodiq wants a main thread, and ends when RabbitMQ is away: it has a process of its own."""
        pause = 1.0
        while True:
            started = time.monotonic()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "windlass.services.janitor.schedule", str(os.getpid())
            )
            try:
                code = await process.wait()
            except asyncio.CancelledError:
                with suppress(ProcessLookupError):
                    process.terminate()
                await process.wait()
                raise
            pause = 1.0 if time.monotonic() - started > 60 else min(pause * 2, 30.0)
            log.warning("the schedule ended (exit code %s); starting it again in %.0f s", code, pause)
            await asyncio.sleep(pause)


async def serve(settings: Settings) -> None:
    pool = await db.open_pool(settings, "janitor", most=2)
    janitor = Janitor(settings, pool)
    await until_told_to_stop(janitor.run())
    with suppress(*db.AWAY_OR_BUSY):
        await reports.withdraw(pool, "janitor", janitor.instance_id)
    pool.terminate()
    log.info("stopped")


def main() -> None:
    settings = Settings()
    logs.start(settings, "janitor")
    serving.serve(settings, "janitor")
    asyncio.run(serve(settings))
