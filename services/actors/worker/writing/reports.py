"""What attempts say while they run: read and written a few times a second, all of it together."""

import asyncio
import logging
from collections.abc import Callable
from uuid import UUID

from windlass.services.actors.worker.context.context import Context
from windlass.services.actors.worker.writing.last_words import before_the_end, joined
from windlass.shared import db
from windlass.shared.errors import words_of
from windlass.shared.metrics.services import WRITE_BATCH
from windlass.shared.process import log_context
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Ending, Heard, Report

log = logging.getLogger("actors.writer")

REPORT_EVERY_SECONDS = 0.25


class Reports:
    """Everything here happens on the writer's loop, which calls `write` when they are due."""

    def __init__(self, loop: asyncio.AbstractEventLoop, *, on_due: Callable[[], None]) -> None:
        self._loop = loop
        self._on_due = on_due
        self._speaking: dict[UUID, Context] = {}
        self.unwritten: dict[UUID, Report] = {}
        self.are_due = False

    def note(self, context: Context) -> None:
        self._report_soon()
        self._speaking[context.task.claim_token] = context

    def go_with(self, ending: Ending) -> Ending:
        """All that its attempt said has been taken up by now; what could not be written goes with its end."""
        return before_the_end(self.unwritten.pop(ending.claim_token, None), ending)

    async def write(self, pool: db.Database) -> None:
        """Before the ends: an attempt's words are numbered in the order in which they were said."""
        speaking, self._speaking, self.are_due = self._speaking, {}, False
        reports, self.unwritten = self.unwritten, {}
        for token, context in speaking.items():
            if (report := joined(reports.get(token), context.take_report())) is not None:
                reports[token] = report
        while reports:
            try:
                self._keep_unwritten(reports, await tasks.report(pool, list(reports.values())))
                WRITE_BATCH.labels("reports").observe(len(reports))
                return
            except db.AWAY_OR_BUSY as error:
                log.warning("reporting again soon (%s)", words_of(error))
                await asyncio.sleep(REPORT_EVERY_SECONDS)
            except db.UNSTORABLE:
                await self._write_one_by_one(pool, reports)
                return

    def _report_soon(self) -> None:
        if not self._speaking and not self.unwritten:
            self._loop.call_later(REPORT_EVERY_SECONDS, self._became_due)

    def _became_due(self) -> None:
        self.are_due = True
        self._on_due()

    def _keep_unwritten(self, reports: dict[UUID, Report], heard: Heard) -> None:
        """Whose row somebody has locked is offered again with what is said until then: nobody waits for it."""
        if heard.skipped:
            self._report_soon()
            self.unwritten |= {token: each for token, each in reports.items() if each.task_id in heard.skipped}

    async def _write_one_by_one(self, pool: db.Database, reports: dict[UUID, Report]) -> None:
        for token, report in reports.items():
            try:
                self._keep_unwritten({token: report}, await tasks.report(pool, [report]))
            except (*db.UNSTORABLE, *db.AWAY_OR_BUSY) as error:
                with log_context.about(task_id=report.task_id, attempt=report.attempt):
                    log.warning("task %s: what it said could not be stored: %s", report.task_id, words_of(error))
