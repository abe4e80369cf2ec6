"""Dramatiq's worker with a desk instead of consumers: into its queue comes what was claimed, and nothing else."""

from queue import Empty, SimpleQueue
from typing import Any, cast

import dramatiq
from dramatiq.worker import ConsumerThread, _WorkQueueItem

from windlass.services.actors.worker.desk import Desk
from windlass.services.actors.worker.executor import Running

IDLE_MS = 60_000
"""A thread without work looks so often whether it should stop. It is woken when it should."""


class WorkQueue:
    """What Dramatiq asks of its queue of work. First in, first out; and a queue that is filled by many puts wakes one
    thread, which wakes the next, so that tasks which take no time wake nearly nobody."""

    def __init__(self) -> None:
        self._items: SimpleQueue[_WorkQueueItem | None] = SimpleQueue()

    def put(self, item: _WorkQueueItem) -> None:
        self._items.put(item)

    def get(self, timeout: float | None = None) -> _WorkQueueItem:
        item = self._items.get(timeout=timeout)
        if item is None:
            raise Empty
        return item

    def get_nowait(self) -> _WorkQueueItem:
        return self.get(timeout=0)

    def task_done(self) -> None:
        """Nobody joins it: what is under way is counted among the attempts."""

    def wake(self, threads: int) -> None:
        for _ in range(threads):
            self._items.put(None)


class Start(dramatiq.MessageProxy):
    """An attempt that was granted, as Dramatiq carries it to a thread. It is known by its claim token: two attempts of
    one task may overlap."""

    def __init__(self, running: Running) -> None:
        task = running.context.task
        super().__init__(
            dramatiq.Message(
                queue_name=f"{task.actor}.{task.provider}",
                actor_name=task.actor,
                args=(str(task.task_id),),
                kwargs={},
                options={},
                message_id=str(task.claim_token),
            )
        )
        self.running = running


class DeskWorker(dramatiq.Worker):
    """One desk stands for every queue."""

    def __init__(
        self,
        broker: dramatiq.Broker,
        *,
        desk: Desk,
        worker_timeout: int = IDLE_MS,
        **options: Any,
    ) -> None:
        self.desk = desk
        super().__init__(broker, worker_timeout=worker_timeout, **options)
        self.work_queue = cast("Any", WorkQueue())

    def start(self) -> None:
        super().start()
        self.desk.start()

    def run(self, running: Running) -> None:
        """From any thread: the next free thread takes it up."""
        self.work_queue.put(_WorkQueueItem(0, Start(running)))

    def stop(self, timeout: int = 600_000) -> None:
        for thread in self.workers:
            thread.stop()
        cast("WorkQueue", self.work_queue).wake(len(self.workers))
        super().stop(timeout)

    def _add_consumer(self, queue_name: str, *, delay: bool = False) -> None:  # noqa: ARG002 - delays are rows
        self.consumers[queue_name] = cast("ConsumerThread", self.desk)
