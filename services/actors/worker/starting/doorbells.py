"""Doorbells that came and wait: each is acked when its queue is asked for, or after a moment, or left to others."""

import asyncio
import math
from collections.abc import Callable, Collection
from typing import Protocol

REMEMBERED_AFTER_SECONDS = 1.0
"""So long a doorbell waits for a place; then it is acked, and the process remembers what it was worth."""

HIDDEN_SECONDS = 0.05
"""So long it waits where no place is free before another process may have it; come back, it stays."""


class Doorbell(Protocol):
    """A message that came: so many starts of its queue."""

    queue: str
    starts: int
    was_elsewhere: bool

    def ack(self) -> None: ...

    def put_back(self) -> None: ...


class Doorbells:
    """`on_put_back` is told of one that another process may have: what it is worth goes with it."""

    def __init__(self, *, free_for: Callable[[str], int], on_put_back: Callable[[Doorbell], None]) -> None:
        self._free_for = free_for
        self._on_put_back = on_put_back
        self._waiting: dict[str, list[Doorbell]] = {}
        self._ended_at = -math.inf

    def add(self, doorbell: Doorbell) -> None:
        self._waiting.setdefault(doorbell.queue, []).append(doorbell)
        loop = asyncio.get_running_loop()
        if self._free_for(doorbell.queue) > 0 or doorbell.was_elsewhere:
            loop.call_later(REMEMBERED_AFTER_SECONDS, self._settle, doorbell)
        else:
            loop.call_later(HIDDEN_SECONDS, self._let_others_have, doorbell)

    def note_end(self) -> None:
        """Places become free."""
        self._ended_at = asyncio.get_running_loop().time()

    def of(self, queue: str) -> Collection[Doorbell]:
        return self._waiting.get(queue, ())

    def settle(self, queue: str) -> None:
        for doorbell in self._waiting.get(queue, [])[:]:
            self._settle(doorbell)

    def settle_all(self) -> None:
        for queue in self._waiting:
            self.settle(queue)

    def _settle(self, doorbell: Doorbell) -> None:
        waiting = self._waiting.get(doorbell.queue, [])
        if doorbell in waiting:
            waiting.remove(doorbell)
            doorbell.ack()

    def _let_others_have(self, doorbell: Doorbell) -> None:
        """Not while places become free again and again: then this one soon has a place as well."""
        loop = asyncio.get_running_loop()
        if self._free_for(doorbell.queue) > 0 or loop.time() - self._ended_at < REMEMBERED_AFTER_SECONDS:
            loop.call_later(REMEMBERED_AFTER_SECONDS, self._settle, doorbell)
            return
        waiting = self._waiting.get(doorbell.queue, [])
        if doorbell in waiting:
            waiting.remove(doorbell)
            self._on_put_back(doorbell)
            doorbell.put_back()
