"""The janitor's process: does the duties of its table by its own timer, when somebody calls and when periodiq rings."""

import asyncio
import logging
import os
import socket
from contextlib import suppress

from windlass.services.janitor import wall
from windlass.services.janitor.calls import Calls
from windlass.services.janitor.duties.bulk import BulkRunner
from windlass.services.janitor.premises import Premises
from windlass.services.janitor.rings import Rings, keep_ringing
from windlass.services.janitor.timer import Timer
from windlass.shared import db
from windlass.shared.metrics import serving
from windlass.shared.process import logs
from windlass.shared.process.lifetime import until_told_to_stop
from windlass.shared.process.pulse import Pulse
from windlass.shared.settings import Settings
from windlass.shared.settings.loading import settings_or_exit
from windlass.shared.store.operating import reports

log = logging.getLogger("janitor")


class Janitor:
    """Any number may run: every duty is guarded and skips rows that somebody else has locked."""

    def __init__(self, premises: Premises) -> None:
        self.instance_id = f"{socket.gethostname()}-{os.getpid()}"
        self._premises = premises
        self._rings = Rings(premises)
        self._calls = Calls(premises)
        self._pulse = Pulse(premises.settings, lives=self._rings.lives)
        self._timer = Timer(premises, self.instance_id, on_answer=self._is_ready, call=self._calls.call)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pulse.run())
            group.create_task(self._timer.run())
            group.create_task(self._calls.listen())
            group.create_task(self._calls.run_bulk_jobs())
            group.create_task(self._calls.gather_memory())
            group.create_task(self._calls.look_after_indexes())
            group.create_task(self._rings.answer())
            group.create_task(keep_ringing())

    def _is_ready(self) -> None:
        self._pulse.is_ready = True


async def serve(settings: Settings) -> None:
    pool = await db.open_pool(settings, "janitor", most=2)
    for_bulk_jobs = await db.open_reading_pool(settings, "janitor", most=1)
    janitor = Janitor(Premises(settings, pool, BulkRunner(settings, for_bulk_jobs)))
    wall.begin()
    await until_told_to_stop(janitor.run())
    with suppress(*db.AWAY_OR_BUSY):
        await reports.withdraw(pool, "janitor", janitor.instance_id)
    pool.terminate()
    for_bulk_jobs.terminate()
    log.info("stopped")


def main() -> None:
    settings = settings_or_exit("database_url", "amqp_url")
    logs.start(settings, "janitor")
    serving.serve(settings, "janitor")
    asyncio.run(serve(settings))
