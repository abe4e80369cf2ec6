"""What an actor is given: the task, a way to report, and a way to learn that it should stop."""

import math
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from services.actors.rates import Rates
from shared.errors import TimedOut
from shared.scrubbing import withhold
from shared.store.tasks import Claimed, Report


class Stopped(BaseException):
    """The attempt was told to stop: a cancel, a shutdown or a lost lease.

    Not an `Exception`, so that an actor's own error handling does not swallow it.
    """


class Context:
    """One attempt, seen from inside. Used by the actor's thread; read by the writer's and the heartbeat's."""

    def __init__(
        self,
        task: Claimed,
        worker_id: str,
        *,
        on_report: Callable[["Context"], None],
        rates: Rates | None = None,
        largest_output_bytes: int = 10_000_000,
    ) -> None:
        self.task = task
        self.worker_id = worker_id
        self._rates = rates
        self.deadline = math.inf
        self._started = time.monotonic()
        self._on_report = on_report
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._progress: dict[str, Any] | None = None
        self._checkpoint: Any = None
        self._output: list[str] = []
        self._output_limit = self._output_left = largest_output_bytes
        self._cut_off = False
        self._reports = 0
        self.is_over = False

    def begin(self) -> None:
        """Its time runs from here."""
        self._started = time.monotonic()
        self.deadline = self._started + self.task.timeout_seconds

    @property
    def task_id(self) -> UUID:
        return self.task.task_id

    @property
    def checkpoint(self) -> Any:
        """What an earlier attempt saved last."""
        return self.task.checkpoint

    def progress(self, message: str, *, percent: float | None = None) -> None:
        """Says how far it is; only the latest word of every fraction of a second is kept."""
        elapsed = round((time.monotonic() - self._started) * 1000)
        with self._lock:
            self._progress = {
                "elapsed_ms": elapsed,
                "message": message,
                "percent": percent,
                "updated_at": datetime.now(UTC).isoformat(),
            }
        self._on_report(self)

    def output(self, text: str) -> None:
        """Streams text to whoever watches; pieces that come quickly are joined. Past an attempt's cap one event says
        so, and the rest is dropped."""
        with self._lock:
            if self._output_left < 0:
                return
            self._output_left -= len(text.encode(errors="replace"))
            if self._output_left < 0:
                self._cut_off = True
            else:
                self._output.append(text)
        self._on_report(self)

    def save(self, checkpoint: Any) -> None:
        """Keeps something that a later attempt can go on from."""
        with self._lock:
            self._checkpoint = checkpoint
        self._on_report(self)

    def sleep(self, seconds: float) -> None:
        """Waits, unless the attempt is told to stop or its time is up."""
        until = time.monotonic() + seconds
        while (left := min(until, self.deadline) - time.monotonic()) > 0:
            self._stop.wait(left)
            self.check()
        self.check()

    def wait_for_rate(self) -> None:
        """Takes a place in the provider's request rate; an actor calls it before each call that orders work.

        The attempt's time stands still meanwhile: waiting is not failing, and must not end in `TimedOut`.
        """
        assert self._rates is not None, "an attempt that a worker runs is given the process' rates"
        left = self.deadline - time.monotonic()
        self.deadline = math.inf
        said: list[str] = []

        def say_once(reason: str) -> None:
            if reason not in said:
                said.append(reason)
                self.progress(reason)

        try:
            self._rates.take(self.task.provider, sleep=self.sleep, on_wait=say_once)
        finally:
            self.deadline = time.monotonic() + left
        if said:
            self.progress("Processing")

    def check(self) -> None:
        """Raises when the attempt should end; an actor that works in steps calls it between them."""
        if self._stop.is_set():
            raise Stopped
        if time.monotonic() >= self.deadline:
            raise TimedOut(f"the attempt took longer than its {self.task.timeout_seconds:g} s")

    def stop(self) -> None:
        """Called from outside: a cancel was requested, the worker stops, or the lease is lost."""
        self._stop.set()

    def take_report(self) -> Report | None:
        """Everything said since the last time, or none when nothing was."""
        with self._lock:
            progress, checkpoint, output, cut_off = self._progress, self._checkpoint, self._output, self._cut_off
            self._progress, self._checkpoint, self._output, self._cut_off = None, None, [], False
            if progress is None and checkpoint is None and not output and not cut_off:
                return None
            self._reports += 1
            number = self._reports
        progress, checkpoint = withhold(progress), withhold(checkpoint)
        events: list[dict[str, Any]] = []
        if output:
            events.append({"type": "output", "data": {"text": withhold("".join(output))}})
        if cut_off:
            marker = {"output_cut_off": True, "limit_bytes": self._output_limit}
            events.append({"type": "output", "data": {"data": marker}})
        if progress is not None:
            events.append({"type": "progress", "data": {"status": "running", "progress": progress}})
        return Report(self.task_id, self.task.attempt, self.task.claim_token, number, progress, checkpoint, events)
