"""The engine for tests whose own work is done by threads: each question opens it, asks and closes it."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from tests.support.engine.store import Engine, an_engine

T = TypeVar("T")


def ask(database_url: str, question: Callable[[Engine], Awaitable[T]]) -> T:
    async def with_an_engine() -> T:
        async with an_engine(database_url) as engine:
            return await question(engine)

    return asyncio.run(with_an_engine())


@contextmanager
def held_up(database_url: str, statement: str, *arguments: Any) -> Iterator[None]:
    """Somebody has the statement's locks in a transaction that is open for as long as the block lasts."""
    holding, done = threading.Event(), threading.Event()

    async def hold(engine: Engine) -> None:
        async with engine.holding(statement, *arguments):
            holding.set()
            await asyncio.to_thread(done.wait, 300)

    somebody = threading.Thread(target=ask, args=(database_url, hold))
    somebody.start()
    assert holding.wait(60)
    try:
        yield
    finally:
        done.set()
        somebody.join(60)
