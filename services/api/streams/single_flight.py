"""Streams that want to know the same at the same time ask once."""

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, TypeVar

T = TypeVar("T")


class SingleFlight:
    """Reads that are under way, by what they ask."""

    def __init__(self) -> None:
        self._under_way: dict[Hashable, asyncio.Task[Any]] = {}

    async def once(self, question: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        """The answer of a read of this question: one that is under way, or a new one.

        Whoever leaves early leaves alone: the read goes on for the others.
        """
        reading = self._under_way.get(question)
        if reading is None:
            reading = asyncio.ensure_future(self._answer(question, read))
            self._under_way[question] = reading
        answer: T = await asyncio.shield(reading)
        return answer

    def forget(self) -> None:
        """Something new was written, which reads under way may not have seen: the next to ask asks anew."""
        self._under_way.clear()

    async def _answer(self, question: Hashable, read: Callable[[], Awaitable[T]]) -> T:
        try:
            return await read()
        finally:
            if self._under_way.get(question) is asyncio.current_task():
                del self._under_way[question]
