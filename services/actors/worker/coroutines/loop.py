"""The actors' event loop: it knows of each task and each thread which attempt it was begun by."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, ThreadPoolExecutor
from contextvars import Context
from typing import Any

import uvloop

from windlass.services.actors.worker.coroutines.belongings import OWNER, Belongings
from windlass.services.actors.worker.coroutines.gate import Gate, Stepped

THREADS = 32
"""For what actors give to threads (`asyncio.to_thread`); each is started when it is first needed."""


class ActorsLoop(uvloop.Loop):
    """What has no owner runs as on any other."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = Gate()
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="to-thread")

    def create_task(self, coro: Any, *, name: str | None = None, context: Context | None = None) -> asyncio.Task[Any]:
        owner = OWNER.get() if context is None else context.get(OWNER)
        if owner is None:
            return super().create_task(coro, name=name, context=context)
        task = super().create_task(Stepped(coro, owner, self.gate), name=name, context=context)
        owner.add_task(task)
        return task

    def attempt(self, work: Coroutine[Any, Any, None], owner: Belongings) -> asyncio.Task[None]:
        """What accompanies an attempt: its steps are the attempt's, and it waits for all that belongs to it."""
        return super().create_task(Stepped(work, owner, self.gate))

    def run_in_executor(  # type: ignore[override]
        self, executor: Executor | None, func: Callable[..., Any], *args: Any
    ) -> "asyncio.Future[Any]":
        owner, threads = OWNER.get(), executor or self._threads
        if owner is None or not isinstance(threads, ThreadPoolExecutor):
            return asyncio.ensure_future(super().run_in_executor(threads, func, *args), loop=self)
        future = threads.submit(func, *args)
        owner.add_thread(future)
        return asyncio.wrap_future(future, loop=self)

    def close(self) -> None:
        super().close()
        self._threads.shutdown(wait=False)
