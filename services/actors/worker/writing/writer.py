"""The process' one way to Postgres for tasks: starts on one connection, reports and ends, in that order, on another."""

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

import uvloop

from windlass.services.actors.worker.capacity import Capacity
from windlass.services.actors.worker.clock import boot_time
from windlass.services.actors.worker.context.context import Context
from windlass.services.actors.worker.starting.inputs import Inputs
from windlass.services.actors.worker.starting.starts import Doorbell, Starts
from windlass.services.actors.worker.writing.gathered_calls import CallOfMany, GatheredCalls
from windlass.services.actors.worker.writing.group_commit import GroupCommit, Reply
from windlass.services.actors.worker.writing.next_tasks import NextTasks
from windlass.services.actors.worker.writing.reports import Reports
from windlass.shared import db, tracing
from windlass.shared.backoff import Backoff
from windlass.shared.errors import words_of
from windlass.shared.metrics.services import WRITE_BATCH
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.tasks import Claim, Claimed, Ending, Refused
from windlass.shared.store.workflows.inputs import resolve_many

log = logging.getLogger("actors.writer")

PLAIN, GUARDED = range(2)

Answer = TypeVar("Answer")


class Writer:
    """A thread with an event loop of its own, which the worker threads hand their ends to, and which asks for what they
    run next."""

    def __init__(
        self,
        settings: Settings,
        worker_id: str,
        *,
        on_claim: Callable[[Sequence[UUID], float], None],
    ) -> None:
        self._settings = settings
        self._rules = Rules.of(settings)
        self._worker_id = worker_id
        self._on_claim = on_claim
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="writer", daemon=True)
        self._starts: Starts | None = None
        self._inputs = Inputs(self._inputs_of, patience_seconds=settings.stop_grace_seconds / 2)
        self._reports = Reports(self._loop, on_due=self._write_soon)
        self._ends: GroupCommit[Ending, str | None] = GroupCommit(
            self._loop,
            self._write_ends,
            offer=self._offer_ends,
            prepare=self._reports.go_with,
            apart=self._apart,
        )
        self._gathered = GatheredCalls(self._loop, self._in_its_turn)
        self._ended_at_once = WRITE_BATCH.labels("ends")
        self._pool: db.Database
        self._is_open = asyncio.Event()
        self._one_at_a_time = asyncio.Lock()
        self._serving: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._thread.start()

    def serve_places(
        self,
        capacity: Capacity,
        queues: Sequence[str],
        *,
        run: Callable[[Claimed, float], None],
        on_suspect: Callable[[], None],
    ) -> None:
        """Before it is started: asks for what is next in these queues, and gives `run` each task with the end of its
        lease."""

        def granted(claimed: Sequence[Claimed], sent_at: float) -> None:
            lease_end = sent_at + self._settings.lease_seconds
            self._on_claim([each.claim_token for each in claimed], lease_end)
            self._inputs.begin(claimed, lambda each: run(each, lease_end))

        self._starts = Starts(
            NextTasks(lambda: self._pool, self._worker_id, self._settings.lease_seconds),
            capacity=capacity,
            queues=queues,
            on_granted=granted,
            on_suspect=on_suspect,
        )

    def begin(self) -> None:
        """From here on it asks by itself, too."""
        if self._starts is not None:
            self._loop.call_soon_threadsafe(self._starts.begin)

    def hear(self, doorbell: Doorbell) -> None:
        if self._starts is not None:
            self._loop.call_soon_threadsafe(self._starts.ring, doorbell)

    def ask_for_all(self) -> None:
        """A connection is back: doorbells may have been lost with it."""
        if self._starts is not None:
            self._loop.call_soon_threadsafe(self._starts.ask_for_all)

    def accompany(self, work: Coroutine[Any, Any, None]) -> "Future[None]":
        """Runs beside the writing, on the same loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def ask_no_more(self) -> "Future[None]":
        """From any thread, and more than once: no end that is handed over after this asks for the next. It is done when
        all that was asked for is answered."""
        return asyncio.run_coroutine_threadsafe(self._stop_asking(), self._loop)

    def stop_asking(self, timeout: float) -> None:
        """Returns when all that was asked for is answered, or the time is over."""
        with suppress(TimeoutError):
            self.ask_no_more().result(timeout)

    def after_the_last_answer(self, step: Callable[[], None]) -> None:
        """From any thread of a worker that stops: takes the step when all that was asked for is answered, or the time
        is over that such a worker has for that."""

        async def wait_and_step() -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._settings.stop_grace_seconds / 2):
                    await self._stop_asking()
            step()

        self.accompany(wait_and_step())

    async def _stop_asking(self) -> None:
        if self._starts is not None:
            await self._starts.close()
            await self._inputs.all_have_begun()

    def forget(self, claim_token: UUID) -> None:
        """Its end could not be written, and nobody works on it any more: its place is free."""
        if self._starts is not None:
            self._loop.call_soon_threadsafe(self._starts.ended, [claim_token])

    def claim_alone(self, claim: Claim) -> tuple[Claimed | Refused, float]:
        """Claims one that must run alone; with the end of its lease."""
        return asyncio.run_coroutine_threadsafe(self._claim_alone(claim), self._loop).result()

    def hand_over(self, ending: Ending, reply: Reply[str | None]) -> None:
        """From any thread. The reply is given the task's status after it, or none when it no longer belonged to this
        worker."""
        self._ends.hand_over(ending, reply)

    def report(self, context: Context) -> None:
        """Notes that an attempt has something to say; it is read and written a few times a second."""
        self._loop.call_soon_threadsafe(self._reports.note, context)

    def call(
        self, intent: Callable[[db.Database], Coroutine[Any, Any, Answer]], *, patience_seconds: float | None = None
    ) -> Answer:
        """Another call of the store, on the same connections: `TimeoutError` when it is not answered soon.

        One that is under way is not cancelled then, for the driver would wait for the server's consent: its answer is
        dropped. One that has not begun never will.
        """
        patience = patience_seconds or self._settings.stop_grace_seconds / 2
        return self.begin_call(intent, patience).result(patience)

    def begin_call(
        self, intent: Callable[[db.Database], Coroutine[Any, Any, Answer]], patience_seconds: float | None = None
    ) -> "Future[Answer]":
        """The same, for who waits in another way. One that does not begin in time fails with `TimeoutError`."""
        patience = patience_seconds or self._settings.stop_grace_seconds / 2
        calling = self._call_alone(intent, until=time.monotonic() + patience)
        return asyncio.run_coroutine_threadsafe(calling, self._loop)

    def begin_together(self, call: CallOfMany[Any, Answer], item: Any) -> "Future[Answer]":
        """The same of a call that takes many: it goes with what others ask of it meanwhile."""
        return self._gathered.begin(call, item, patience_seconds=self._settings.stop_grace_seconds / 2)

    def close(self, timeout: float) -> None:
        """When every attempt has got its answer, there is nothing left to write."""
        self._loop.call_soon_threadsafe(self._stop_serving)
        self._thread.join(timeout)

    def _write_soon(self) -> None:
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
        duties = [self._serve_ends(), self._ends.offer_one_by_one(), self._gathered.serve()]
        if self._starts is not None:
            duties += [self._starts.serve(), self._starts.help_itself()]
        self._serving = [asyncio.create_task(duty) for duty in duties]
        await asyncio.gather(*self._serving, return_exceptions=True)
        self._pool.terminate()

    async def _call_alone(
        self, intent: Callable[[db.Database], Coroutine[Any, Any, Answer]], *, until: float
    ) -> Answer:
        await self._is_open.wait()

        async def in_time(pool: db.Database) -> Answer:
            if time.monotonic() >= until:
                raise TimeoutError
            return await intent(pool)

        return await self._in_its_turn(in_time)

    async def _in_its_turn(self, intent: Callable[[db.Database], Awaitable[Answer]]) -> Answer:
        """One at a time: claims and ends share two connections with these, and never wait for more than one of them."""
        async with self._one_at_a_time:
            return await intent(self._pool)

    async def _serve_ends(self) -> None:
        while True:
            await self._ends.woken()
            if self._reports.are_due:
                await self._reports.write(self._pool)
            await self._ends.flush()

    async def _claim_alone(self, claim: Claim) -> tuple[Claimed | Refused, float]:
        backoff = Backoff(first_seconds=0.05, longest_seconds=1)
        seconds = self._settings.lease_seconds
        await self._is_open.wait()
        while True:
            lease_end = boot_time() + seconds
            try:
                (answer,) = await tasks.claim(
                    self._pool, self._worker_id, [claim], seconds, alone=True, traced=tracing.is_on()
                )
            except db.AWAY_OR_BUSY as error:
                log.warning("claiming again soon (%s)", words_of(error))
                await asyncio.sleep(backoff.pause())
                continue
            if isinstance(answer, Claimed):
                self._on_claim([answer.claim_token], lease_end)
            return answer, lease_end

    async def _inputs_of(self, task_ids: Sequence[UUID]) -> Mapping[UUID, dict[str, Any]]:
        largest = self._settings.largest_input_bytes
        until = time.monotonic() + self._settings.stop_grace_seconds / 2
        return await self._call_alone(lambda pool: resolve_many(pool, task_ids, largest_bytes=largest), until=until)

    async def _write_ends(self, endings: Sequence[Ending], *, offered: bool = False) -> Sequence[str | None]:
        statuses = None if offered else await self._end_and_ask(endings)
        if statuses is None:
            statuses = await tasks.end(self._pool, endings, self._rules, briefly=offered)
            if self._starts is not None:
                self._starts.ended([ending.claim_token for ending in endings])
        self._ended_at_once.observe(len(endings))
        return statuses

    def _apart(self, ending: Ending) -> int:
        """The call for ends of guarded providers locks these providers, to ask for the next tasks. A batch of plain
        ends does not wait for that."""
        attempt = self._starts.of(ending.claim_token) if self._starts is not None else None
        return GUARDED if attempt is not None and attempt.is_guarded else PLAIN

    async def _end_and_ask(self, endings: Sequence[Ending]) -> Sequence[str | None] | None:
        """Ends them and asks for what is next, if a queue may have work. None when it did not ask, or when something
        went wrong: an end never fails because of the next, and goes again alone."""
        tokens = [ending.claim_token for ending in endings]
        ask = self._starts.ask_with(tokens) if self._starts is not None else None
        if self._starts is None or ask is None:
            return None
        sent_at = boot_time()
        try:
            statuses, granted = await tasks.end_and_next(
                self._pool,
                endings,
                self._rules,
                self._worker_id,
                ask,
                self._settings.lease_seconds,
                epoch=self._starts.epoch,
                traced=tracing.is_on(),
            )
        except Exception as error:  # noqa: BLE001 - logged, and raised again by the ends alone if it is theirs
            log.warning("%d ends go again alone (%s)", len(endings), words_of(error))
            self._starts.unanswered(ask)
            return None
        self._starts.ended(tokens)
        self._starts.answered(ask, granted, sent_at)
        return statuses

    async def _offer_ends(self, endings: Sequence[Ending]) -> Sequence[str | None]:
        return await self._write_ends(endings, offered=True)
