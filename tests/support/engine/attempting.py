"""A worker's machine without its consumers: attempts are claimed, work through the writer, and are taken back."""

from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

from tests.support.engine.store_from_threads import ask
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.context.context import Context
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Claim, Claimed
from windlass.shared.store.tasks.steps import results_of_steps


class Worker:
    """A writer as a worker has it, and attempts at one task after the other; it counts what they ask the store."""

    def __init__(self, engine_url: str, directory: Path) -> None:
        self.engine_url = engine_url
        # What it asks is counted: nothing is asked again because the machine is busy.
        self.settings = Settings(database_url=engine_url, data_dir=directory, stop_grace_seconds=60, lease_seconds=180)
        self.writer = Writer(self.settings, "worker-1", on_claim=lambda _tokens, _end: None)
        self.calls = Calls(patience_seconds=30)
        self.asked = 0

    def claim(self, task_id: UUID) -> Context:
        answer, _ = self.writer.claim_alone(Claim(task_id, uuid4()))
        assert isinstance(answer, Claimed), answer
        context = Context(
            answer,
            "worker-1",
            on_report=lambda _: None,
            begin_asking=self._begin,
            calls=self.calls,
            settings=self.settings,
        )
        context.begin()
        return context

    def take_back(self, context: Context) -> Context:
        """As after the death of the worker: the task goes to another attempt."""
        ask(self.engine_url, lambda engine: engine.finish(context.task, "retry", delay_seconds=0))
        return self.claim(context.task_id)

    def _begin(self, intent: Callable[..., Any]) -> "Future[Any]":
        self.asked += 1
        return self.writer.begin_call(intent)

    def kept(self, task_id: UUID) -> dict[str, Any]:
        return ask(self.engine_url, lambda engine: results_of_steps(engine.pool, task_id))

    def events(self, task_id: UUID) -> list[dict[str, Any]]:
        rows = ask(self.engine_url, lambda engine: engine.history(task_id))
        return [{**row.data, "attempt": row.attempt} for row in rows if row.type == "step"]


@contextmanager
def a_worker(engine_url: str, directory: Path) -> Iterator[Worker]:
    worker = Worker(engine_url, directory)
    worker.writer.start()
    worker.calls.start()
    try:
        yield worker
    finally:
        worker.calls.close()
        worker.writer.close(timeout=60)
        worker.writer._loop.close()
