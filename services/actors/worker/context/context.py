"""What an actor is given: the task, a way to report, and a way to learn that it should stop."""

import asyncio
import logging
import math
import os
import threading
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar
from uuid import UUID

from windlass.services.actors.worker.context.children import Children
from windlass.services.actors.worker.context.rate_turn import RateTurn
from windlass.services.actors.worker.context.steps import Steps
from windlass.services.actors.worker.context.stored_files import StoredFiles
from windlass.services.actors.worker.context.stored_steps import StoredSteps
from windlass.services.actors.worker.context.unreported import Unreported
from windlass.shared import db
from windlass.shared.actors.awaiting import refuse_awaitables
from windlass.shared.actors.stopped import Stopped
from windlass.shared.errors import TimedOut
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Claimed, Report, owner_of

if TYPE_CHECKING:
    from windlass.services.actors.worker.calls import Calls
    from windlass.services.actors.worker.writing.gathered_calls import CallOfMany

__all__ = ["Context", "StopReason", "Stopped"]

StopReason = Literal["cancelled", "lost", "stopping"]
"""Somebody wants the task cancelled; it is no longer ours; or the worker stops and another one will go on."""

Answer = TypeVar("Answer")

Intent = Callable[[db.Database], Coroutine[Any, Any, Any]]

ASK_AGAIN_SECONDS = 0.25


class Context:
    """One attempt, seen from inside. Used by the actor's thread; read by the writer's and the heartbeat's."""

    is_given_to_actors = True
    """As `windlass.Context`, which the users' own name."""

    def __init__(
        self,
        task: Claimed,
        worker_id: str,
        *,
        on_report: Callable[["Context"], None],
        calls: "Calls | None" = None,
        store: Callable[[Intent], Any] | None = None,
        begin_asking: Callable[[Intent], "Future[Any]"] | None = None,
        begin_together: "Callable[[CallOfMany[Any, Any], Any], Future[Any]] | None" = None,
        settings: Settings | None = None,
        largest_output_bytes: int = 10_000_000,
        largest_output_event_bytes: int = 65_536,
    ) -> None:
        self.task = task
        self.worker_id = worker_id
        self._calls = calls
        self._store = store
        self._begin_asking = begin_asking
        self._begin_together = begin_together
        self._user_id: str | None = task.user_id
        self._settings = settings
        self._rate = RateTurn(self)
        self.exit_code: int | None = None
        self.proof: dict[str, Any] | None = None
        self.deadline = math.inf
        self._started = time.monotonic()
        self._news = threading.Condition()
        self._nudges = 0
        self._listeners: tuple[Callable[[], None], ...] = ()
        self.is_told_by_the_loop = False
        """That it should end, which happens at `cancelled_at`: it holds no thread."""
        self.cancelled_at: float | None = None
        self.stop_reason: StopReason | None = None
        self._lock = threading.Lock()
        self._unreported = Unreported(
            task,
            announce=lambda: on_report(self),
            most_output_bytes=largest_output_bytes,
            most_event_bytes=largest_output_event_bytes,
        )
        self._steps: Steps | None = None
        self._children: Children | None = None
        self._files: StoredFiles | None = None
        self.is_over = False

    def begin(self) -> None:
        """Its time runs from here."""
        self._started = time.monotonic()
        self.deadline = self._started + self.task.timeout_seconds

    @property
    def task_id(self) -> UUID:
        return self.task.task_id

    @property
    def attempt(self) -> int:
        return self.task.attempt

    @property
    def user_id(self) -> str:
        """Who has submitted the task."""
        if self._user_id is None:
            self._user_id = self.ask(owner_of, self.task_id)
        return self._user_id

    @property
    def log(self) -> logging.Logger:
        """Its lines say which task and attempt they are about, as all do while the attempt runs."""
        return logging.getLogger(f"actors.{self.task.actor}")

    @property
    def checkpoint(self) -> Any:
        """What an earlier attempt saved last."""
        return self.task.checkpoint

    def progress(self, message: str, *, percent: float | None = None) -> None:
        """Says how far it is; only the latest word of every fraction of a second is kept."""
        elapsed = round((time.monotonic() - self._started) * 1000)
        updated_at = datetime.now(UTC).isoformat().replace("+00:00", "Z")
        self._unreported.progress(
            {"elapsed_ms": elapsed, "message": message, "percent": percent, "updated_at": updated_at}
        )

    def output(self, text: str, *, stream: str | None = None) -> None:
        """Streams text to whoever watches; pieces that come quickly are joined, and what is long becomes several
        events. Past an attempt's cap one event says so, and the rest is dropped. `stream` tells apart what does not
        come the usual way."""
        self._unreported.output(text, stream)

    def save(self, checkpoint: Any) -> None:
        """Keeps something that a later attempt can go on from."""
        refuse_awaitables(checkpoint, "the checkpoint")
        self._unreported.checkpoint(checkpoint)

    @property
    def steps(self) -> Steps:
        """Made when it is asked for: most actors have none."""
        with self._lock:
            self._steps = self._steps or Steps(self, StoredSteps(self))
            return self._steps

    def step(self, name: str, function: Callable[..., Answer], /, *arguments: Any, **options: Any) -> Answer:
        """Calls the function, and keeps what it returns before it returns that itself: a later attempt of the task is
        given it, and the function is not called again."""
        answer: Answer = self.steps.run(name, function, *arguments, **options)
        return answer

    @property
    def settings(self) -> Settings:
        assert self._settings is not None, "an attempt that a worker runs is given the process' settings"
        return self._settings

    @property
    def children(self) -> Children:
        with self._lock:
            self._children = self._children or Children(self)
            return self._children

    def submit(self, actor: Any, payload: Mapping[str, Any] | None = None, /, **options: Any) -> str:
        """Makes a child of this task, and returns its `task_id`. The payload's fields may stand among the options, as
        in `POST /tasks/{actor}`. Whatever number of attempts comes to the same place, there is one child."""
        return self.children.submit(actor, payload, options)

    @property
    def files(self) -> StoredFiles:
        with self._lock:
            self._files = self._files or StoredFiles(self)
            return self._files

    def store_file(self, data: bytes | str | os.PathLike[str], /, *, media_type: str | None = None) -> str:
        """Keeps bytes, or the file at a path, and returns its `content_id`; the same bytes of the same task are kept
        once."""
        return self.files.store(data, media_type)

    def usage(
        self,
        *,
        cost_usd: float | None = None,
        prompt_tokens: int | None = None,
        completion_tokens: int | None = None,
    ) -> None:
        """Says what something has cost: added up over the task's attempts, also over one whose worker dies."""
        self.charge({"cost_usd": cost_usd, "prompt_tokens": prompt_tokens, "completion_tokens": completion_tokens})

    def charge(self, said: Mapping[str, Any]) -> None:
        """The same in somebody else's words."""
        self._unreported.charge(said)

    @property
    def spent(self) -> dict[str, float] | None:
        """What the attempt has cost since its last report; none when nobody said."""
        return self._unreported.spent

    def sleep(self, seconds: float) -> None:
        """Waits, unless the attempt is told to stop or its time is up."""
        self._wait(seconds, lambda: False)
        self.check()

    def sleep_until_nudged(self, seconds: float) -> bool:
        """As `sleep`, but returns early, and true, when somebody has news for this attempt: a provider called back."""
        self._wait(seconds, lambda: self._nudges > 0)
        self.check()
        return self.take_nudge()

    def take_nudge(self) -> bool:
        """Whether there was one since the last time."""
        with self._news:
            nudged, self._nudges = self._nudges > 0, 0
        return nudged

    def run(self, work: Coroutine[Any, Any, Answer], *, finish: bool = False) -> Answer:
        """Waits for something asynchronous, such as a request, which is cancelled when the attempt should end.

        What must not be left half done (`finish`) is given some time to come to its end all the same; the next
        `check` ends the attempt then.
        """
        assert self._calls is not None, "an attempt that a worker runs is given the process' calls"
        call = self._calls.begin(work, on_end=self._tell)
        self._wait(math.inf, call.done)
        if finish and not call.done():
            self._calls.let_finish(call)
        if not call.done():
            self._calls.cancel(call)
            self.check()
        return call.result()

    def ask(self, intent: Callable[..., Coroutine[Any, Any, Answer]], *arguments: Any, **options: Any) -> Answer:
        """A call of the store, `ask(intent, …)` for `intent(db, …)`, made again until it is answered or the attempt
        should end: only for what may be repeated."""
        assert self._store is not None, "an attempt that a worker runs is given the process' store"
        while True:
            try:
                answer: Answer = self._store(lambda database: intent(database, *arguments, **options))
                return answer
            except db.AWAY_OR_BUSY:
                self.sleep(ASK_AGAIN_SECONDS)

    async def ask_async(
        self, intent: Callable[..., Coroutine[Any, Any, Answer]], *arguments: Any, **options: Any
    ) -> Answer:
        """The same from an event loop, which goes on meanwhile."""
        return await self._until_answered(lambda: self._asked(lambda database: intent(database, *arguments, **options)))

    async def ask_together(self, call: "CallOfMany[Any, Answer]", item: Any) -> Answer:
        """The same of a call that takes many: it goes with what other attempts ask of it meanwhile."""
        begin = self._begin_together
        if begin is None:
            (answer,) = await self.ask_async(call, [item])
            return answer
        return await self._until_answered(lambda: self._in_time(begin(call, item)))

    async def _until_answered(self, ask: Callable[[], Awaitable[Answer]]) -> Answer:
        while True:
            try:
                return await ask()
            except db.AWAY_OR_BUSY:
                self.check()
                await asyncio.sleep(ASK_AGAIN_SECONDS)

    async def _asked(self, intent: Intent) -> Any:
        if self._begin_asking is None:
            assert self._store is not None, "an attempt that a worker runs is given the process' store"
            return await self.in_a_thread(self._store, intent)
        return await self._in_time(self._begin_asking(intent))

    async def _in_time(self, asked: "Future[Answer]") -> Answer:
        """Waited for as long as by a thread. What is under way is not cancelled with who asks it, for the driver would
        wait for the server's consent."""
        async with asyncio.timeout(self.settings.stop_grace_seconds / 2):
            return await asyncio.shield(asyncio.wrap_future(asked))

    async def in_a_thread(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Waits for what cannot be awaited, on a thread that no actor can keep busy."""
        threads = None if self._calls is None else self._calls.threads
        return await asyncio.get_running_loop().run_in_executor(threads, function, *arguments)

    def _wait(self, seconds: float, heard: Callable[[], bool]) -> None:
        until = time.monotonic() + seconds
        with self._news:
            while self.stop_reason is None and not heard():
                left = min(until, self.deadline) - time.monotonic()
                if left <= 0:
                    return
                self._news.wait(min(left, threading.TIMEOUT_MAX))

    def listen(self, listener: Callable[[], None]) -> None:
        """It is called, from any thread, when there is news for whoever works on the attempt."""
        with self._news:
            self._listeners = (*self._listeners, listener)

    def listen_no_more(self, listener: Callable[[], None]) -> None:
        with self._news:
            self._listeners = tuple(each for each in self._listeners if each != listener)

    def _tell(self) -> None:
        with self._news:
            self._news.notify_all()
        for listener in self._listeners:
            listener()

    def rate(self, *, sleep: Callable[[float], None] | None = None) -> None:
        """Takes a place in the provider's rate; an actor that may make several calls in one attempt, each of which
        orders work, calls it before each. `sleep` is how to wait, for who has somebody else to look after."""
        self._rate.take(sleep or self.sleep)

    async def rate_async(self) -> None:
        await self._rate.take_async()

    @contextmanager
    def waiting_for_others(self) -> Iterator[None]:
        """The attempt's time stands still: it does nothing but wait for what is not its own."""
        left = self.deadline - time.monotonic()
        self.deadline = math.inf
        try:
            yield
        finally:
            self.deadline = time.monotonic() + left
            self._tell()  # who waits for an asynchronous actor has to look at its time anew

    def check(self) -> None:
        """Raises when the attempt should end; an actor that works in steps calls it between them."""
        if self.stop_reason is not None:
            raise Stopped
        if time.monotonic() >= self.deadline:
            raise TimedOut(f"the attempt took longer than its {self.task.timeout_seconds:g} s")

    def should_end(self) -> bool:
        return self.stop_reason is not None or time.monotonic() >= self.deadline

    @property
    def patience_seconds(self) -> float:
        """What must not be cut in the middle may take so long when the attempt should end."""
        assert self._calls is not None, "an attempt that a worker runs is given the process' calls"
        return self._calls.patience_seconds

    def stop(self, reason: StopReason = "stopping") -> None:
        """Called from outside; the first reason stays."""
        with self._news:
            self.stop_reason = self.stop_reason or reason
        self._tell()

    def nudge(self) -> None:
        """Called from outside: there is news, look now instead of later."""
        with self._news:
            self._nudges += 1
        self._tell()

    def take_report(self) -> Report | None:
        """Everything said since the last time, or none when nothing was."""
        return self._unreported.take()
