"""Catches up with the pending rows of a feature, so that a read shows every move that was committed before it."""

import asyncio
import logging
from collections.abc import Sequence
from uuid import UUID

from windlass.shared import db
from windlass.shared.features.feature import Feature
from windlass.shared.features.handling import handle_pending
from windlass.shared.metrics.outbox import FAILED, HANDLED
from windlass.shared.store import outbox

log = logging.getLogger("features")

MOST_ROWS = 2000
LONGEST_SECONDS = 3.0
"""A frozen orchestrator keeps its locks for two seconds."""
SUBJECTS_OF_A_PAGE = 500
MOST_PAGES = 10
FULL_LOOK_SECONDS = 15.0


class CatchUp:
    """For one process and one feature. A call looks at rows that are newer than the last complete look, and every 15
    seconds at all of them.

    The work of one call is bounded. If more rows wait than the bound allows, as after hours without an orchestrator, or
    if the feature fails, the read goes ahead without their effect. The next read continues.
    """

    def __init__(self, pool: db.Pool, feature: Feature) -> None:
        self._pool = pool
        self._feature = feature
        self._since = 0
        self._full_look_at = 0.0
        HANDLED.labels(feature.name)
        FAILED.labels(feature.name)

    async def before_read(self) -> None:
        """Never fails because of the feature: the orchestrator tries again, and the outbox's alert fires."""
        try:
            await self()
        except db.NOT_MIGRATED:
            raise
        except Exception:
            log.warning("catch_up_failed feature=%s", self._feature.name, exc_info=True)

    async def __call__(self) -> None:
        work = _Work(self._pool, self._feature)
        started_at = asyncio.get_running_loop().time()
        look = await outbox.new_rows(
            self._pool, since=self._since, at_most=SUBJECTS_OF_A_PAGE, feature=self._feature.name
        )
        await work.handle([subject for _, subject in look.keys])
        is_full = not look.is_complete or started_at >= self._full_look_at
        if is_full:
            await self._look_at_all(work)
        if work.is_complete:
            self._since = look.line
            if is_full:
                self._full_look_at = started_at + FULL_LOOK_SECONDS
        else:
            log.warning("catch_up_incomplete feature=%s handled=%d", self._feature.name, work.rows)

    async def _look_at_all(self, work: "_Work") -> None:
        after = None
        for _ in range(MOST_PAGES):
            page = await outbox.walk(self._pool, after=after, at_most=SUBJECTS_OF_A_PAGE, feature=self._feature.name)
            await work.handle([subject for _, subject in page.keys])
            after = page.last
            if after is None or not work.is_complete:
                return
        work.is_complete = False


class _Work:
    """What one call may do."""

    def __init__(self, pool: db.Pool, feature: Feature) -> None:
        self._pool = pool
        self._feature = feature
        self._until = asyncio.get_running_loop().time() + LONGEST_SECONDS
        self.rows = 0
        self.is_complete = True

    async def handle(self, subjects: Sequence[UUID]) -> None:
        """Waits for subjects that another process is handling: their effect is not committed yet."""
        left = list(subjects)
        while left:
            if self.rows >= MOST_ROWS or asyncio.get_running_loop().time() >= self._until:
                self.is_complete = False
                return
            batch, left = left[: self._feature.subjects_at_once], left[self._feature.subjects_at_once :]
            outcome = await handle_pending(self._pool, self._feature, batch, waits=True)
            self.rows += outcome.rows
            left += [*outcome.busy, *outcome.unfinished]
