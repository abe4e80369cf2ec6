"""The attempts that run in this process at the moment."""

import threading
import time
from uuid import UUID

from services.actors.context import Context


class Attempts:
    """Shared by the worker threads, which come and go, and the heartbeat, which watches them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._contexts: dict[UUID, Context] = {}
        self._asked_to_stop: dict[UUID, float] = {}

    def add(self, context: Context) -> None:
        with self._lock:
            self._contexts[context.task_id] = context

    def remove(self, context: Context) -> None:
        with self._lock:
            self._contexts.pop(context.task_id, None)
            self._asked_to_stop.pop(context.task_id, None)

    def leases(self) -> dict[UUID, UUID]:
        """The claim token of each task held."""
        with self._lock:
            return {task_id: context.task.claim_token for task_id, context in self._contexts.items()}

    def stop(self, task_id: UUID) -> None:
        """Asks one attempt to end, if it is still here."""
        with self._lock:
            context = self._contexts.get(task_id)
            if context is not None:
                self._asked_to_stop.setdefault(task_id, time.monotonic())
        if context is not None:
            context.stop()

    def stop_all(self) -> None:
        for task_id in self.leases():
            self.stop(task_id)

    def deaf(self, grace_seconds: float) -> list[Context]:
        """Those that have ignored a stop, or their own deadline, for longer than the grace."""
        now = time.monotonic()
        with self._lock:
            return [
                context
                for task_id, context in self._contexts.items()
                if now > min(self._asked_to_stop.get(task_id, now), context.deadline) + grace_seconds
            ]

    def __len__(self) -> int:
        return len(self._contexts)
