"""Does the bulk jobs, chunk by chunk: those that this process accepted, and those that another one left behind."""

import asyncio
import logging

from windlass.shared import db
from windlass.shared.process.lifetime import until_set
from windlass.shared.settings import Settings
from windlass.shared.store.rows import BulkJobRow
from windlass.shared.store.tasks import bulk

log = logging.getLogger("api")

CANARY_SECONDS = 1.0
"""How often canaries are looked after while a job waits for them."""


class BulkRunner:
    """One per api process. Any number may run: a chunk that two of them try is done by one."""

    def __init__(self, settings: Settings, pool: db.Database, lists: db.Database) -> None:
        self._settings = settings
        self._pool = pool
        self._lists = lists
        self._news = asyncio.Event()

    def wake(self) -> None:
        self._news.set()

    async def run(self) -> None:
        """Until cancelled. With nothing to do it asks once in a while whether somebody has left a job behind."""
        while True:
            self._news.clear()
            try:
                pause = await self._do_a_round()
            except db.AWAY_OR_BUSY + db.NOT_MIGRATED as error:
                log.debug("bulk jobs wait for Postgres (%s)", error or type(error).__name__)
                pause = min(CANARY_SECONDS, self._settings.safety_poll_seconds)
            await until_set(self._news, at_most_seconds=pause)

    async def _do_a_round(self) -> float:
        """A chunk of every job; returns how long the next round has time."""
        jobs = await bulk.unfinished(self._lists)
        moved = [await self._move(job) for job in jobs]
        if any(moved):
            return 0
        waiting = any(job.state == "waiting-for-canary" for job in jobs)
        poll = self._settings.safety_poll_seconds
        return min(CANARY_SECONDS, poll) if waiting else poll

    async def _move(self, job: BulkJobRow) -> bool:
        """Whether the job has come on by us; if not, it waits, or another process is at it."""
        try:
            if job.state == "waiting-for-canary":
                after = await bulk.judge_canaries(self._pool, job.bulk_id)
            else:
                after = await bulk.advance(self._pool, job, await bulk.next_chunk(self._lists, job))
        except db.CONTENDED as error:
            log.warning("bulk %s: trying again later (%s)", job.bulk_id, error)
            return False
        except db.UNSTORABLE as error:
            await bulk.stop(self._pool, job.bulk_id, reason=f"its filter cannot be applied: {error}")
            return True
        if after is not None and after.state in {"finished", "stopped"}:
            log.info("bulk %s of %d tasks %s", job.action, after.changed, after.state)
        return after is not None
