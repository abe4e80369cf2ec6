"""The process' one way to Postgres for tasks: claims on one connection, reports and ends, in that order, on another."""

import asyncio
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from typing import Any, TypeVar
from uuid import UUID

import uvloop

from windlass.services.actors.worker.context import Context
from windlass.services.actors.worker.leases.clock import boot_time
from windlass.services.actors.worker.writing.group_commit import GroupCommit
from windlass.services.actors.worker.writing.last_words import before_the_end, joined
from windlass.shared import db, tracing
from windlass.shared.concerns import LOCKS_A_SUBJECT
from windlass.shared.metrics.services import WRITE_BATCH
from windlass.shared.process import log_context
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.tasks import Claim, Claimed, Ending, Refused

log = logging.getLogger("actors.writer")

REPORT_EVERY_SECONDS = 0.25

Answer = TypeVar("Answer")


def locks_a_subject(ending: Ending) -> bool:
    return bool(ending.concerns & LOCKS_A_SUBJECT)


class Writer:
    """A thread with an event loop of its own, which the worker threads hand their claims and ends to."""

    def __init__(
        self,
        settings: Settings,
        worker_id: str,
        *,
        on_claim: Callable[[Sequence[UUID], float], None],
        alone: bool = False,
    ) -> None:
        self._settings = settings
        self._rules = Rules.of(settings)
        self._worker_id = worker_id
        self._on_claim = on_claim
        self._alone = alone
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._claims: GroupCommit[Claim, Claimed | Refused] = GroupCommit(
            self._loop, self._write_claims, offer=self._offer_claim
        )
        self._ends: GroupCommit[Ending, str | None] = GroupCommit(
            self._loop,
            self._write_ends,
            offer=self._offer_end,
            prepare=self._with_what_was_said,
            apart=locks_a_subject,
        )
        self._claimed_at_once, self._ended_at_once = WRITE_BATCH.labels("claims"), WRITE_BATCH.labels("ends")
        self._speaking: dict[UUID, Context] = {}
        self._unwritten: dict[UUID, tasks.Report] = {}
        self._reports_are_due = False
        self._pool: db.Database
        self._is_open = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._serving: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._thread.start()

    def claim(self, claim: Claim) -> Claimed | Refused:
        return self._claims.put(claim)

    def end(self, ending: Ending) -> str | None:
        """The task's status after it, or none when it no longer belonged to this worker."""
        return self._ends.put(ending)

    def report(self, context: Context) -> None:
        """Notes that an attempt has something to say; it is read and written a few times a second."""
        self._loop.call_soon_threadsafe(self._note_speaker, context)

    def call(
        self, intent: Callable[[db.Database], Coroutine[Any, Any, Answer]], *, patience_seconds: float | None = None
    ) -> Answer:
        """Another call of the store, on the same connections: `TimeoutError` when it is not answered soon.

        One that is under way is not cancelled then, for the driver would wait for the server's consent: its answer is
        dropped. One that has not begun never will.
        """
        patience = patience_seconds or self._settings.stop_grace_seconds / 2
        calling = self._call_alone(intent, until=time.monotonic() + patience)
        return asyncio.run_coroutine_threadsafe(calling, self._loop).result(patience)

    def close(self, timeout: float) -> None:
        """When every attempt has got its answer, there is nothing left to write."""
        self._loop.call_soon_threadsafe(self._stop_serving)
        self._thread.join(timeout)

    def _note_speaker(self, context: Context) -> None:
        self._report_soon()
        self._speaking[context.task.claim_token] = context

    def _report_soon(self) -> None:
        if not self._speaking and not self._unwritten:
            self._loop.call_later(REPORT_EVERY_SECONDS, self._reports_became_due)

    def _reports_became_due(self) -> None:
        self._reports_are_due = True
        self._ends.wake()

    def _stop_serving(self) -> None:
        for task in self._serving:
            task.cancel()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._pool = await db.open_pool(self._settings, "actors-writer", most=2)
        self._is_open.set()
        duties = (
            self._serve_claims(),
            self._serve_ends(),
            self._claims.offer_one_by_one(),
            self._ends.offer_one_by_one(),
        )
        self._serving = [asyncio.create_task(duty) for duty in duties]
        await asyncio.gather(*self._serving, return_exceptions=True)
        self._pool.terminate()

    async def _call_alone(
        self, intent: Callable[[db.Database], Coroutine[Any, Any, Answer]], *, until: float
    ) -> Answer:
        """One at a time: claims and ends share two connections with these, and never wait for more than one of them."""
        await self._is_open.wait()
        async with self._one_at_a_time:
            if time.monotonic() >= until:
                raise TimeoutError
            return await intent(self._pool)

    async def _serve_claims(self) -> None:
        while True:
            await self._claims.woken()
            await self._claims.flush()

    async def _serve_ends(self) -> None:
        while True:
            await self._ends.woken()
            if self._reports_are_due:
                await self._write_reports()
            await self._ends.flush()

    async def _write_claims(self, claims: Sequence[Claim], *, briefly: bool = False) -> Sequence[Claimed | Refused]:
        sent_at = boot_time()
        seconds = self._settings.lease_seconds
        answers = await tasks.claim(
            self._pool, self._worker_id, claims, seconds, alone=self._alone, traced=tracing.is_on(), briefly=briefly
        )
        self._claimed_at_once.observe(len(claims))
        if claimed := [answer.claim_token for answer in answers if isinstance(answer, Claimed)]:
            self._on_claim(claimed, sent_at + seconds)
        return answers

    async def _offer_claim(self, claim: Claim) -> Claimed | Refused:
        (answer,) = await self._write_claims([claim], briefly=True)
        return answer

    async def _write_ends(self, endings: Sequence[Ending], *, briefly: bool = False) -> Sequence[str | None]:
        # A project or a workflow may be locked for long, and the ends of plain tasks come next on this connection.
        briefly = briefly or locks_a_subject(endings[0])
        statuses = await tasks.end(self._pool, endings, self._rules, briefly=briefly)
        self._ended_at_once.observe(len(endings))
        return statuses

    async def _offer_end(self, ending: Ending) -> str | None:
        (status,) = await self._write_ends([ending], briefly=True)
        return status

    def _with_what_was_said(self, ending: Ending) -> Ending:
        """All that its attempt said has been taken up by now; what could not be written goes with its end."""
        return before_the_end(self._unwritten.pop(ending.claim_token, None), ending)

    async def _write_reports(self) -> None:
        """Before the ends: an attempt's words are numbered in the order in which they were said."""
        speaking, self._speaking, self._reports_are_due = self._speaking, {}, False
        reports, self._unwritten = self._unwritten, {}
        for token, context in speaking.items():
            if (report := joined(reports.get(token), context.take_report())) is not None:
                reports[token] = report
        while reports:
            try:
                self._keep_unwritten(reports, await tasks.report(self._pool, list(reports.values())))
                WRITE_BATCH.labels("reports").observe(len(reports))
                return
            except db.AWAY_OR_BUSY as error:
                log.warning("reporting again soon (%s)", error or type(error).__name__)
                await asyncio.sleep(REPORT_EVERY_SECONDS)
            except db.UNSTORABLE:
                await self._write_one_by_one(reports)
                return

    def _keep_unwritten(self, reports: dict[UUID, tasks.Report], heard: tasks.Heard) -> None:
        """Whose row somebody has locked is offered again with what is said until then: nobody waits for it."""
        if heard.skipped:
            self._report_soon()
            self._unwritten |= {token: each for token, each in reports.items() if each.task_id in heard.skipped}

    async def _write_one_by_one(self, reports: dict[UUID, tasks.Report]) -> None:
        for token, report in reports.items():
            try:
                self._keep_unwritten({token: report}, await tasks.report(self._pool, [report]))
            except (*db.UNSTORABLE, *db.AWAY_OR_BUSY) as error:
                with log_context.about(task_id=report.task_id, attempt=report.attempt):
                    log.warning("task %s: what it said could not be stored: %s", report.task_id, error)
