"""One attempt in a worker: what its actor is given, and what the writer and the heartbeat see of it."""

import logging
import math
import time
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from windlass.services.actors.worker.context.asking import Asking, Intent
from windlass.services.actors.worker.context.backend import WorkerBackend
from windlass.services.actors.worker.context.unreported import Unreported
from windlass.shared.actors.attempt.faces import PlainContext
from windlass.shared.actors.attempt.waits import OnLoop, OnThread, Waits, at_once
from windlass.shared.actors.stopped import Stopped
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Claimed, Report, owner_of

if TYPE_CHECKING:
    from windlass.services.actors.worker.calls import Calls
    from windlass.services.actors.worker.writing.gathered_calls import CallOfMany

__all__ = ["Context", "StopReason", "Stopped"]

StopReason = Literal["cancelled", "lost", "stopping"]
"""A cancel was requested; the task has lost its claim; or the worker stops and another one will go on."""

Answer = TypeVar("Answer")


class Context(PlainContext):
    """Used by the actor's thread; read by the writer's and the heartbeat's."""

    def __init__(
        self,
        task: Claimed,
        worker_id: str,
        *,
        on_report: Callable[["Context"], None],
        calls: "Calls | None" = None,
        begin_asking: "Callable[[Intent], Future[Any]] | None" = None,
        begin_together: "Callable[[CallOfMany[Any, Any], Any], Future[Any]] | None" = None,
        settings: Settings | None = None,
        largest_output_bytes: int = 10_000_000,
        largest_output_event_bytes: int = 65_536,
    ) -> None:
        super().__init__(task.task_id, task.attempt, task.timeout_seconds)
        self.task = task
        self.worker_id = worker_id
        self.begin_asking = begin_asking
        self.begin_together = begin_together
        self._calls = calls
        self._user_id: str | None = task.user_id
        self._settings = settings
        self.exit_code: int | None = None
        self.proof: dict[str, Any] | None = None
        self._nudges = 0
        self.is_told_by_the_loop = False
        """That it should end, which happens at `cancelled_at`: it holds no thread."""
        self.cancelled_at: float | None = None
        self._unreported = Unreported(
            task,
            announce=lambda: on_report(self),
            most_output_bytes=largest_output_bytes,
            most_event_bytes=largest_output_event_bytes,
        )
        self.is_over = False

    def begin(self) -> None:
        """Its time runs from here."""
        self._unreported.began = time.monotonic()
        self.deadline = self._unreported.began + self.task.timeout_seconds

    @property
    def user_id(self) -> str:
        """The user who has submitted the task."""
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

    @property
    def settings(self) -> Settings:
        assert self._settings is not None, "an attempt that a worker runs is given the process' settings"
        return self._settings

    def backend(self, waits: Waits) -> WorkerBackend:
        return WorkerBackend(Asking(self, waits))

    def on_loop(self) -> OnLoop:
        """With threads of our own: those of the actors' loop an actor may keep busy for as long as it likes."""
        return OnLoop(None if self._calls is None else self._calls.threads)

    @cached_property
    def asking(self) -> Asking:
        return Asking(self, OnThread(self.pause))

    @cached_property
    def asking_on_loop(self) -> Asking:
        return Asking(self, self.on_loop())

    def ask(self, intent: Callable[..., Coroutine[Any, Any, Answer]], *arguments: Any, **options: Any) -> Answer:
        """A call of the store, `ask(intent, …)` for `intent(db, …)`, made again until it is answered or the attempt
        should end: only for what may be repeated."""
        return at_once(self.asking.ask(intent, *arguments, **options))

    def run(self, work: Coroutine[Any, Any, Answer]) -> Answer:
        """Waits for something asynchronous, such as a request, which is cancelled when the attempt should end."""
        assert self._calls is not None, "an attempt that a worker runs is given the process' calls"
        call = self._calls.begin(work, on_end=self.notify)
        self.wait(math.inf, call.done)
        if not call.done():
            self._calls.cancel(call)
            self.check()
        return call.result()

    def report(self, kind: str, **words: Any) -> None:
        getattr(self._unreported, kind)(**words)

    def take_report(self) -> Report | None:
        """Everything reported since the last time, or none."""
        return self._unreported.take()

    @property
    def spent(self) -> dict[str, float] | None:
        """What the attempt has cost since its last report, or none."""
        return self._unreported.spent

    @contextmanager
    def waiting_for_others(self) -> Iterator[None]:
        """The attempt's time stands still: it does nothing but wait for what is not its own."""
        left = self.deadline - time.monotonic()
        self.deadline = math.inf
        try:
            yield
        finally:
            self.deadline = time.monotonic() + left
            self.notify()  # what watches the deadline of an async attempt has to look again

    @property
    def patience_seconds(self) -> float:
        """What must not be cut in the middle may take so long when the attempt should end."""
        assert self._calls is not None, "an attempt that a worker runs is given the process' calls"
        return self._calls.patience_seconds

    def nudge(self) -> None:
        """Called from outside: there is news, look now instead of later."""
        with self._news:
            self._nudges += 1
        self.notify()

    def take_nudge(self) -> bool:
        """Whether there was one since the last time."""
        with self._news:
            nudged, self._nudges = self._nudges > 0, 0
        return nudged
