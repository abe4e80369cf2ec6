"""Hypothesis on the engine: one database and one set of connections for all the examples of a test."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import SearchStrategy

from tests.support.engine.store import Engine, an_engine

T = TypeVar("T")


def for_examples(
    database_url: str, examples: SearchStrategy[T], check: Callable[[Engine, T], Awaitable[None]], *, number: int
) -> None:
    """Checks so many examples, the same ones every time."""
    often = settings(max_examples=number, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
    with asyncio.Runner() as runner:
        context = an_engine(database_url)
        engine = runner.run(context.__aenter__())

        async def check_one(example: T) -> None:
            await check(engine, example)

        @often
        @given(examples)
        def check_all(example: T) -> None:
            runner.run(check_one(example))

        try:
            check_all()
        finally:
            runner.run(context.__aexit__(None, None, None))
