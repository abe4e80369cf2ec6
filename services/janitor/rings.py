"""Periodiq's rings: the process that rings, and the thread that answers."""

import asyncio
import concurrent.futures
import logging
import os
import sys
import time
from contextlib import suppress

import dramatiq

from windlass.services.janitor.idleness import busy, look_around
from windlass.services.janitor.premises import Premises
from windlass.services.janitor.rhythms import Rhythm
from windlass.services.janitor.schedule import BROKER_AWAY, boot
from windlass.services.janitor.table import duties_of
from windlass.services.janitor.wall import EXPECTED, perform_all
from windlass.shared.backoff import Backoff
from windlass.shared.broker import threads_live
from windlass.shared.errors import words_of

log = logging.getLogger("janitor")


class Rings:
    """Consumes the `janitor` queue with one Dramatiq thread, which hands each ring's duties to this loop."""

    def __init__(self, premises: Premises) -> None:
        self._premises = premises
        self._worker: dramatiq.Worker | None = None
        self._under_way: set[asyncio.Task[None]] = set()
        self._is_over = False

    def lives(self) -> bool:
        return self._worker is None or threads_live(self._worker)

    async def answer(self) -> None:
        """Until cancelled."""
        loop = asyncio.get_running_loop()

        def perform(rhythm: Rhythm) -> None:
            ringing = asyncio.run_coroutine_threadsafe(self._perform(rhythm), loop)
            with suppress(concurrent.futures.CancelledError):  # the process ends; somebody rings again in time
                ringing.result()

        worker = dramatiq.Worker(boot(self._premises.settings, perform), worker_threads=1)
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
            await self._leave_off()

    async def _perform(self, rhythm: Rhythm) -> None:
        if self._is_over:
            return
        task = asyncio.current_task()
        assert task is not None, "it runs in the loop"
        self._under_way.add(task)
        try:
            look = await look_around(self._premises)
            await perform_all(busy(duties_of(rhythm), look), self._premises)
        except EXPECTED as error:
            log.warning("the duties of this %s: again next time (%s)", rhythm, words_of(error))
        finally:
            self._under_way.discard(task)

    async def _leave_off(self) -> None:
        """What is under way belongs to nobody else who would cancel it, and must not be met by the pool's end."""
        self._is_over = True
        for task in self._under_way:
            task.cancel()
        await asyncio.gather(*self._under_way, return_exceptions=True)


async def keep_ringing() -> None:
    """Periodiq wants a main thread, and ends when RabbitMQ is away: it has a process of its own. Until cancelled."""
    backoff = Backoff(first_seconds=1, longest_seconds=30, good_run_seconds=60)
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
        pause = backoff.after(time.monotonic() - started)
        told = log.debug if code == BROKER_AWAY else log.warning
        told("the schedule ended (exit code %s); starting it again in %.0f s", code, pause)
        await asyncio.sleep(pause)
