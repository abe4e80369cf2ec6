"""StateMirror: Dramatiq's two hooks around what runs, which was claimed before and whose end is handed over."""

import logging
import threading
from typing import Any

import dramatiq
from dramatiq.middleware import SkipMessage

from windlass.services.actors.worker.executor import Executor, Running


class StateMirror(dramatiq.Middleware):
    """Each message carries the attempt that it stands for."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
        self._thread = threading.local()

    @property
    def running(self) -> Running:
        """The attempt of the thread that asks."""
        running: Running = self._thread.running
        return running

    def before_worker_boot(self, broker: dramatiq.Broker, worker: dramatiq.Worker) -> None:  # noqa: ARG002
        """A failed attempt or claim is told once, by the executor, with the task and what becomes of it: Dramatiq's own
        word about it, and about every message that is skipped, would be the second."""
        logging.getLogger("dramatiq.worker.WorkerThread").setLevel(logging.CRITICAL)

    def before_process_message(self, broker: dramatiq.Broker, message: Any) -> None:  # noqa: ARG002
        if not self._executor.take_up(message.running):
            raise SkipMessage("the worker stops, or the lease is nearly over: the task is handed back")
        self._thread.running = message.running

    def after_process_message(
        self,
        broker: dramatiq.Broker,  # noqa: ARG002
        message: Any,  # noqa: ARG002 - the attempt is the thread's
        *,
        result: None = None,  # noqa: ARG002 - an actor's result is kept in `Running`
        exception: BaseException | None = None,
    ) -> None:
        running: Running | None = getattr(self._thread, "running", None)
        if running is not None:
            self._thread.running = None
            self._executor.end(running, exception)
