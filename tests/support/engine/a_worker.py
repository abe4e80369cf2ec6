"""A worker without Dramatiq: a writer that asks, an executor that takes in, and a test that takes up."""

import queue
import threading
from types import SimpleNamespace

from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.capacity import Capacity
from windlass.services.actors.worker.executor import Executor, Running
from windlass.services.actors.worker.guests import Guests
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared.settings import Settings


class Worker:
    """With so many places, and what was granted to it; no thread takes anything up by itself."""

    def __init__(self, settings: Settings, *, places: int = 1) -> None:
        self.granted: queue.Queue[Running] = queue.Queue()
        self.writer = Writer(settings, "worker-1", on_claim=lambda _tokens, _lease_end: None)
        self.attempts = Attempts()
        self.executor = Executor(
            self.writer,
            self.attempts,
            Calls(patience_seconds=1),
            "worker-1",
            settings=settings,
            guests=Guests([]),
            condemn=lambda _reason: None,
        )
        self.writer.serve_places(
            Capacity(places),
            ["probe.probe", "probe.narrow"],
            run=lambda task, lease_end: self.granted.put(self.executor.grant(task, lease_end)),
            on_suspect=lambda: None,
        )

    def hear(self, queue: str, starts: int) -> None:
        """A doorbell that nobody has to ack."""
        bell = SimpleNamespace(queue=queue, starts=starts, was_elsewhere=True, ack=lambda: None, put_back=lambda: None)
        self.writer.hear(bell)

    def take_up(self, running: Running) -> bool:
        """Whether it was; handed back, it is so in Postgres as well."""
        is_answered = threading.Event()
        running.on_answered = is_answered.set
        is_taken_up = self.executor.take_up(running)
        if not is_taken_up:
            is_answered.wait()
        return is_taken_up

    def finish(self, running: Running) -> None:
        """As a thread does it whose actor has returned; and waits for the answer."""
        is_answered = threading.Event()
        running.on_answered = is_answered.set
        assert self.executor.take_up(running)
        self.executor.end(running, None)
        is_answered.wait()
