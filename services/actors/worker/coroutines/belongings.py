"""What an attempt on the loop has begun, tasks and threads alike: it is over when all of that is."""

import asyncio
from concurrent.futures import Future
from contextvars import ContextVar
from typing import Any


class Belongings:
    """Of one attempt; used on its loop. Whatever is begun in its context belongs to it, also by what it has begun."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._threads: set[Future[Any]] = set()
        self._news = asyncio.Event()

    def add_task(self, task: asyncio.Task[Any]) -> None:
        self._tasks.add(task)
        self._news.set()
        task.add_done_callback(self._task_ended)

    def add_thread(self, future: "Future[Any]") -> None:
        """What a thread does for it."""
        loop = asyncio.get_running_loop()
        self._threads.add(future)
        future.add_done_callback(lambda ended: loop.call_soon_threadsafe(self._thread_ended, ended))

    async def end(self) -> None:
        """Returns when nothing is left. Each task is cancelled, once; what a thread has begun is waited for."""
        cancelled: set[asyncio.Task[Any]] = set()
        while self._tasks or self._threads:
            self._news.clear()
            for task in self._tasks - cancelled:
                task.cancel()
            cancelled |= self._tasks
            for future in list(self._threads):
                future.cancel()
            await self._news.wait()

    def at_work_on_threads(self) -> "list[Future[Any]]":
        """From any thread: what some other still does for it. What has not begun never will."""
        return [future for future in list(self._threads) if not future.cancel() and not future.done()]

    def _task_ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self._news.set()

    def _thread_ended(self, future: "Future[Any]") -> None:
        self._threads.discard(future)
        self._news.set()


OWNER: ContextVar[Belongings | None] = ContextVar("belongings", default=None)
"""Whose it is what is begun in this context; none where no attempt on the loop is at work."""
