"""The janitor's process: recovers what its owner left behind, on its own timer, with or without RabbitMQ."""

import asyncio
import logging
import os
import signal
import socket
import time
from contextlib import suppress

from services.janitor.stale import recover_stale
from services.janitor.workers import lose_silent_workers
from shared import db, logs
from shared.settings import Settings
from shared.store import reports, tasks

log = logging.getLogger("janitor")


class Janitor:
    """Sleeps until the earliest lease runs out. Any number may run: every sweep is guarded and skips locked rows."""

    def __init__(self, settings: Settings, pool: db.Database) -> None:
        self.settings = settings
        self.pool = pool
        self.instance_id = f"{socket.gethostname()}-{os.getpid()}"
        self._judges_from = 0.0

    async def run(self) -> None:
        while True:
            try:
                sleep = await self._sweep()
            except db.AWAY_OR_BUSY as error:
                log.warning("sweeping again soon (%s)", error or type(error).__name__)
                # Nobody could renew while Postgres was away; let the living do so before the dead are counted.
                self._judges_from = time.monotonic() + 2 * self.settings.heartbeat_seconds
                sleep = 0.5
            await asyncio.sleep(sleep)

    async def _sweep(self) -> float:
        """Does the duties once, and returns how long to sleep."""
        await reports.say(self.pool, "janitor", self.instance_id, healthy=True, details={})
        wait = self._judges_from - time.monotonic()
        if wait > 0:
            return wait
        await recover_stale(self.pool)
        await lose_silent_workers(self.pool, self.settings)
        next_expiry = await tasks.seconds_to_next_expiry(self.pool)
        longest = min(self.settings.safety_poll_seconds, self.settings.lease_seconds)
        return longest if next_expiry is None else min(max(next_expiry, 0.05), longest)


async def serve(settings: Settings) -> None:
    pool = await db.open_pool(settings, "janitor", most=2)
    janitor = Janitor(settings, pool)
    running = asyncio.create_task(janitor.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, running.cancel)
    with suppress(asyncio.CancelledError):
        await running
    with suppress(*db.UNAVAILABLE):
        await reports.withdraw(pool, "janitor", janitor.instance_id)
    pool.terminate()
    log.info("stopped")


def main() -> None:
    settings = Settings()
    logs.start(settings, "janitor")
    asyncio.run(serve(settings))
