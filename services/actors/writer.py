"""Writes what the threads of this process did, many at a time: whatever gathered while the last call was under way goes
as one call, so that a busy process pays one commit for a handful of tasks."""

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Future
from typing import Generic, TypeVar
from uuid import UUID

from services.actors.clock import boot_time
from services.actors.context import Context
from shared import db
from shared.settings import Settings
from shared.store import tasks
from shared.store.tasks import Claim, Claimed, Ending, Refused, Report

log = logging.getLogger("actors.writer")

REPORT_EVERY_SECONDS = 0.25
MOST_PER_CALL = 200

Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Batcher(Generic[Item, Answer]):
    """Gathers items and hands them on together; each thread that waits gets its own answer."""

    def __init__(self, call: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]) -> None:
        self._call = call
        self._gathered: deque[tuple[Item, Future[Answer]]] = deque()

    def add(self, item: Item, answer: "Future[Answer]") -> None:
        self._gathered.append((item, answer))

    async def flush(self) -> None:
        while self._gathered:
            # Threads append meanwhile; a deque's ends are safe to use without a lock.
            batch = [self._gathered.popleft() for _ in range(min(len(self._gathered), MOST_PER_CALL))]
            await self._write(batch)

    async def _write(self, batch: "list[tuple[Item, Future[Answer]]]") -> None:
        """Repeats while Postgres is away or busy; a value that cannot be stored is found by replaying one by one."""
        pause = 0.05
        while True:
            try:
                answers = await self._call([item for item, _ in batch])
            except db.AWAY_OR_BUSY as error:
                log.warning("writing again in %.2f s (%s)", pause, error or type(error).__name__)
                await asyncio.sleep(pause)
                pause = min(pause * 2, 1.0)
            except db.UNSTORABLE as error:
                if len(batch) == 1:
                    batch[0][1].set_exception(error)
                    return
                for each in batch:
                    await self._write([each])
                return
            except Exception as error:  # noqa: BLE001 - recorded by the threads that wait for it
                for _, answer in batch:
                    answer.set_exception(error)
                return
            else:
                for (_, future), value in zip(batch, answers, strict=True):
                    future.set_result(value)
                return


class Writer:
    """One thread with one connection that every claim, report and end of this process goes through."""

    def __init__(self, settings: Settings, worker_id: str, *, on_claim: Callable[[float], None]) -> None:
        self._settings = settings
        self._worker_id = worker_id
        self._on_claim = on_claim
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._wake = asyncio.Event()
        self._woken = False
        self._closing = False
        self._pool: db.Database
        self._claims: Batcher[Claim, Claimed | Refused] = Batcher(self._write_claims)
        self._ends: Batcher[Ending, str | None] = Batcher(lambda endings: tasks.end(self._pool, endings))
        self._speaking: dict[UUID, Context] = {}
        self._reports_are_due = False

    def start(self) -> None:
        self._thread.start()

    def claim(self, claim: Claim) -> Claimed | Refused:
        return self._gather(self._claims, claim)

    def end(self, ending: Ending) -> str | None:
        """The task's status after it, or none when it no longer belonged to this worker."""
        return self._gather(self._ends, ending)

    def report(self, context: Context) -> None:
        """Notes that an attempt has something to say; it is read and written a few times a second."""
        self._loop.call_soon_threadsafe(self._note_speaker, context)

    def close(self, timeout: float) -> None:
        """Writes what still waits, for as long as the timeout allows."""
        self._loop.call_soon_threadsafe(self._close)
        self._thread.join(timeout)

    def _gather(self, batcher: Batcher[Item, Answer], item: Item) -> Answer:
        answer: Future[Answer] = Future()
        batcher.add(item, answer)
        if not self._woken:  # one wake-up serves everything that gathers before the writer looks
            self._woken = True
            self._loop.call_soon_threadsafe(self._wake.set)
        return answer.result()

    def _note_speaker(self, context: Context) -> None:
        if not self._speaking:
            self._loop.call_later(REPORT_EVERY_SECONDS, self._reports_became_due)
        self._speaking[context.task.claim_token] = context

    def _reports_became_due(self) -> None:
        self._reports_are_due = True
        self._wake.set()

    def _close(self) -> None:
        self._closing = True
        self._wake.set()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(self._serve())

    async def _serve(self) -> None:
        self._pool = await db.open_pool(self._settings, "actors-writer", most=1)
        while not self._closing:
            await self._wake.wait()
            self._wake.clear()
            self._woken = False
            if self._reports_are_due:
                await self._write_reports()
            await self._ends.flush()  # before the claims: they free slots
            await self._claims.flush()
        await self._pool.close()

    async def _write_reports(self) -> None:
        speaking, self._speaking, self._reports_are_due = self._speaking, {}, False
        batcher: Batcher[Report, None] = Batcher(self._send_reports)
        answers: list[Future[None]] = []
        for context in speaking.values():
            if (report := context.take_report()) is not None:
                answers.append(Future())
                batcher.add(report, answers[-1])
        await batcher.flush()
        for answer in answers:
            if error := answer.exception():
                log.error("a report could not be stored: %s", error)

    async def _send_reports(self, reports: Sequence[Report]) -> Sequence[None]:
        await tasks.report(self._pool, reports)
        return [None] * len(reports)

    async def _write_claims(self, claims: Sequence[Claim]) -> Sequence[Claimed | Refused]:
        sent_at = boot_time()
        answers = await tasks.claim(self._pool, self._worker_id, claims, self._settings.lease_seconds)
        if any(isinstance(answer, Claimed) for answer in answers):
            self._on_claim(sent_at + self._settings.lease_seconds)
        return answers
