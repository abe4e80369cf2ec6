"""How an attempt waits: on a thread of its own, which it may block, or on an event loop, which it must not."""

import asyncio
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from typing import Any, TypeVar

Answer = TypeVar("Answer")

RENAMED = "coroutine raised StopIteration"
"""What Python makes of a `StopIteration` that leaves a coroutine."""


class OnThread:
    """Each wait blocks the calling thread, so that a coroutine of the core never suspends: see `at_once`."""

    is_on_loop = False

    def __init__(self, sleep: Callable[[float], None]) -> None:
        self._sleep = sleep

    async def sleep(self, seconds: float) -> None:
        self._sleep(seconds)

    async def answer(self, asked: "Future[Answer]", seconds: float | None = None) -> Answer:
        """Raises `TimeoutError` after so many seconds. The call itself is not cancelled."""
        return asked.result(seconds)

    async def call(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        """Calls a function that blocks."""
        return function(*arguments)


class OnLoop:
    """Each wait suspends. A cancelled wait does not cancel the call: the database driver would have to wait for the
    server's consent."""

    is_on_loop = True

    def __init__(self, threads: Executor | None = None) -> None:
        self._threads = threads

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def answer(self, asked: "Future[Answer]", seconds: float | None = None) -> Answer:
        async with asyncio.timeout(seconds):
            return await asyncio.shield(asyncio.wrap_future(asked))

    async def call(self, function: Callable[..., Answer], *arguments: Any) -> Answer:
        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)


Waits = OnThread | OnLoop
"""The core awaits these, its backend, and the steps of an `async def` actor: nothing else."""


def at_once(work: Coroutine[Any, Any, Answer]) -> Answer:
    """Runs a coroutine of the core on the calling thread, if its waits are `OnThread`. It costs a microsecond and needs
    no event loop."""
    try:
        work.send(None)
    except StopIteration as end:
        answer: Answer = end.value
        return answer
    except RuntimeError as error:
        if error.__cause__ is not None and str(error) == RENAMED:
            raise error.__cause__ from None  # raised by the actor's own function
        raise
    work.close()
    raise RuntimeError("a coroutine has suspended on a thread without an event loop")
