"""The attempts that run in this process at the moment."""

import threading
import time
from collections.abc import Callable
from uuid import UUID

from windlass.services.actors.worker.capacity import queue_of
from windlass.services.actors.worker.context.context import Context, StopReason


class Attempts:
    """Shared by the worker threads, which come and go, and the heartbeat, which watches them.

    An attempt is known by its claim token: the next attempt of the same task may begin before this one is put away.
    `on_over` hears of each whose work has ended: it needs no lease any more, though its end is still to be written.
    """

    def __init__(self, *, on_over: Callable[[UUID], None] = lambda _claim_token: None) -> None:
        self._on_over = on_over
        self._lock = threading.Lock()
        self._contexts: dict[UUID, Context] = {}
        self._asked_to_stop: dict[UUID, float] = {}

    def add(self, context: Context) -> None:
        with self._lock:
            self._contexts[context.task.claim_token] = context

    def over(self, context: Context) -> None:
        """Its work has ended, one way or the other."""
        context.is_over = True
        self._on_over(context.task.claim_token)

    def remove(self, context: Context) -> None:
        with self._lock:
            self._contexts.pop(context.task.claim_token, None)
            self._asked_to_stop.pop(context.task.claim_token, None)

    def leases(self) -> dict[UUID, UUID]:
        """The task held under each claim token."""
        with self._lock:
            return {token: context.task_id for token, context in self._contexts.items()}

    def queues(self) -> list[str]:
        """That of each."""
        with self._lock:
            return [queue_of(context.task) for context in self._contexts.values()]

    def nudge(self, task_id: UUID | None) -> None:
        """Passes on that there is news for a task, if it runs here; none means any, whose news may be lost."""
        with self._lock:
            contexts = [context for context in self._contexts.values() if task_id in {None, context.task_id}]
        for context in contexts:
            context.nudge()

    def stop(self, claim_token: UUID, reason: StopReason = "stopping") -> Context | None:
        """Asks one attempt to end, if it is still here; returns the one that had not been asked before."""
        with self._lock:
            context = self._contexts.get(claim_token)
            if context is None:
                return None
            is_new = claim_token not in self._asked_to_stop
            self._asked_to_stop.setdefault(claim_token, time.monotonic())
        context.stop(reason)
        return context if is_new else None

    def stop_all(self) -> None:
        for claim_token in self.leases():
            self.stop(claim_token)

    def deaf(self, grace_seconds: float) -> list[Context]:
        """Those that have ignored a stop, or their own deadline, for longer than the grace."""
        now = time.monotonic()
        with self._lock:
            return [
                context
                for token, context in self._contexts.items()
                if not context.is_over and now > self._told_at(token, context, now) + grace_seconds
            ]

    def _told_at(self, claim_token: UUID, context: Context, now: float) -> float:
        """When it was told to end, or should have known; who is told by the loop cannot know before."""
        if context.is_told_by_the_loop:
            return now if context.cancelled_at is None else context.cancelled_at
        return min(self._asked_to_stop.get(claim_token, now), context.deadline)

    def any_work(self) -> bool:
        """Whether an actor is still at work; an attempt that only waits for its end to be written is not."""
        with self._lock:
            return any(not context.is_over for context in self._contexts.values())

    def __len__(self) -> int:
        return len(self._contexts)
