"""Procrastinate: jobs and their events in Postgres, workers woken by LISTEN.

`work CONCURRENCY`: one process with its asynchronous connector and so many jobs at a time.
"""

import asyncio
from contextlib import AbstractContextManager
from typing import Any

from procrastinate import App, PsycopgConnector, SyncPsycopgConnector

from bench.peers.tasks import Place, no_op, note

BATCH = 1000
EVERY_MINUTE = "* * * * *"
"""The documentation's example looks for stalled jobs at every tenth minute; a crontab can do no better than this."""


async def no_op_at_once() -> float:
    """On the event loop: a plain function would cost it a hop to a thread."""
    return no_op()


async def note_at_once(path: str, key: int, seconds: float) -> None:
    note(path, key, 0)
    await asyncio.sleep(seconds)


class System:
    def __init__(self, place: Place) -> None:
        self.place = place
        self.app = App(connector=SyncPsycopgConnector(conninfo=place.database_url))
        self.no_op = self.app.task(name="no_op")(no_op_at_once)
        self.note = self.app.task(name="note")(note_at_once)

        async def retry_stalled_jobs(context: Any, timestamp: int) -> None:  # noqa: ARG001 - both are given by position and name
            for job in await context.app.job_manager.get_stalled_jobs():
                await context.app.job_manager.retry_job(job)

        options = {"name": "retry_stalled_jobs", "queueing_lock": "retry_stalled_jobs", "pass_context": True}
        self.app.periodic(cron=EVERY_MINUTE)(self.app.task(**options)(retry_stalled_jobs))

    def prepare(self) -> None:
        with self.app.open():
            self.app.schema_manager.apply_schema()

    def connected(self) -> AbstractContextManager[object]:
        opened: AbstractContextManager[object] = self.app.open()
        return opened

    def submit_no_ops(self, number: int) -> None:
        for begin in range(0, number, BATCH):
            self.no_op.batch_defer(*[{}] * min(BATCH, number - begin))

    def submit_note(self, path: str, key: int, seconds: float) -> None:
        self.note.defer(path=path, key=key, seconds=seconds)

    def work(self, *options: str) -> None:
        asyncio.run(self._work(int(options[0])))

    async def _work(self, concurrency: int) -> None:
        connector = PsycopgConnector(conninfo=self.place.database_url, min_size=4, max_size=max(4, concurrency // 2))
        with self.app.replace_connector(connector) as app:
            async with app.open_async():
                await app.run_worker_async(concurrency=concurrency)
