"""Bulk jobs: what the api has accepted is done chunk by chunk, whoever accepted it and whoever began."""

import logging
import time
from uuid import UUID

from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.features.projects import bulk as projects
from windlass.shared.metrics.services import JANITOR_DUTY_FAILURES
from windlass.shared.settings import Settings
from windlass.shared.store.rows import BulkJobRow
from windlass.shared.store.tasks import bulk

log = logging.getLogger("janitor")

CANARY_SECONDS = 1.0
"""How often canaries are looked after while a job waits for them."""


class BulkRunner:
    """One per janitor, on a connection of its own: a chunk that waits for somebody's lock holds up no other duty. Any
    number may run: a chunk that two of them try is done by one."""

    def __init__(self, settings: Settings, pool: db.Database) -> None:
        self._settings = settings
        self._pool = pool
        self._aside: dict[UUID, float] = {}

    async def do_a_round(self) -> float:
        """A chunk of every job; returns how long the next round has time."""
        unfinished = await bulk.unfinished(self._pool)
        if not unfinished:
            return UNTIL_CALLED
        jobs = [job for job in unfinished if not self._is_aside(job.bulk_id)]
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
                after = await projects.advance(self._pool, job, await bulk.next_chunk(self._pool, job))
        except db.CONTENDED as error:
            log.warning("bulk %s: trying again later (%s)", job.bulk_id, words_of(error))
            return False
        except db.UNAVAILABLE:
            raise
        except db.UNSTORABLE as error:
            await bulk.stop(self._pool, job.bulk_id, reason=f"its filter cannot be applied: {error}")
            return True
        except Exception:
            JANITOR_DUTY_FAILURES.labels("bulk").inc()
            log.exception("bulk %s cannot be done just now; the others go on", job.bulk_id)
            self._aside[job.bulk_id] = time.monotonic() + self._settings.safety_poll_seconds
            return False
        if after is not None and after.state in {"finished", "stopped"}:
            log.info("bulk %s of %d tasks %s", job.action, after.changed, after.state)
        return after is not None

    def _is_aside(self, bulk_id: UUID) -> bool:
        if self._aside.get(bulk_id, 0) > time.monotonic():
            return True
        self._aside.pop(bulk_id, None)
        return False
