"""Coroutines of the core that run on a `def` actor's thread, without an event loop."""

import asyncio
from concurrent.futures import Future
from typing import Any

import pytest

from windlass.shared.actors.attempt.waits import OnThread, at_once

ON_THREAD = OnThread(lambda _seconds: None)


def test_each_wait_blocks_and_the_result_comes_at_once() -> None:
    asked: Future[int] = Future()
    asked.set_result(3)

    async def work() -> int:
        await ON_THREAD.sleep(1)
        return await ON_THREAD.answer(asked) + await ON_THREAD.call(len, "ab")

    assert at_once(work()) == 5


def test_an_answer_that_takes_too_long_is_a_timeout_and_goes_on() -> None:
    asked: Future[int] = Future()
    with pytest.raises(TimeoutError):
        at_once(ON_THREAD.answer(asked, 0.001))
    assert not asked.cancelled()


def test_the_errors_of_the_actor_s_function_keep_their_type() -> None:
    async def call(function: Any) -> Any:
        return function()

    with pytest.raises(StopIteration):
        at_once(call(iter([]).__next__))
    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        at_once(call((next(iter([])) for _ in range(1)).__next__))


def test_a_coroutine_that_needs_a_loop_is_refused() -> None:
    with pytest.raises(RuntimeError, match="suspended on a thread"):
        at_once(asyncio.sleep(0))
