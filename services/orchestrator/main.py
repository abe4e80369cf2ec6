"""The orchestrator's process: relays outbox rows to the features, and fires schedules. It needs Postgres only."""

import asyncio
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress

import uvloop

from windlass.services.orchestrator.firing import Firing
from windlass.services.orchestrator.relay import Relay
from windlass.shared import db
from windlass.shared.features.registry import FEATURES
from windlass.shared.metrics import serving
from windlass.shared.process import logs
from windlass.shared.process.lifetime import until_told_to_stop
from windlass.shared.process.pulse import Pulse
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit
from windlass.shared.store import outbox, schedules
from windlass.shared.store.operating import reports

log = logging.getLogger("orchestrator")


class Orchestrator:
    def __init__(self, settings: Settings, pool: db.Pool) -> None:
        self.instance_id = f"{socket.gethostname()}-{os.getpid()}"
        self._settings = settings
        self._pool = pool
        self._relay = Relay(pool, FEATURES)
        self._firing = Firing(pool)
        self._pulse = Pulse(settings)

    async def run(self) -> None:
        channels: dict[str, Callable[[str], None]] = {
            outbox.CHANNEL: self._relay.wake,
            schedules.CHANNEL: self._firing.wake,
        }
        listener = db.Listener(self._settings, "orchestrator", channels)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pulse.run())
            group.create_task(self._report())
            group.create_task(listener.run())
            group.create_task(self._relay.run())
            group.create_task(self._firing.run())

    async def _report(self) -> None:
        """Reports to `/health`. The process is ready once Postgres has taken a report."""
        while True:
            with suppress(*db.AWAY_OR_BUSY, *db.NOT_MIGRATED):
                await reports.say(self._pool, "orchestrator", self.instance_id, healthy=True, details={})
                self._pulse.is_ready = True
            await asyncio.sleep(self._settings.safety_poll_seconds if self._pulse.is_ready else 0.3)


async def serve(settings: Settings) -> None:
    pool = await db.open_feature_pool(settings, "orchestrator", most=5)
    orchestrator = Orchestrator(settings, pool)
    await until_told_to_stop(orchestrator.run())
    with suppress(*db.AWAY_OR_BUSY):
        await reports.withdraw(pool, "orchestrator", orchestrator.instance_id)
    pool.terminate()
    log.info("stopped")


def main() -> None:
    settings = settings_or_exit("database_url")
    logs.start(settings, "orchestrator")
    serving.serve(settings, "orchestrator")
    uvloop.run(serve(settings))
