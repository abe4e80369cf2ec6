"""Requests that an attempt waits for end with the attempt."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.test_context import TASK
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.shared.errors import TimedOut
from windlass.shared.settings import Settings

SOON = 60


@pytest.fixture
def calls() -> Iterator[Calls]:
    calls = Calls(patience_seconds=SOON)
    calls.start()
    yield calls
    calls.close()


@pytest.fixture
def context(calls: Calls) -> Context:
    return Context(TASK, "worker-1", on_report=lambda _: None, calls=calls)


class Slow:
    """Work that goes on until it is cancelled, and notes that."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()
        self.outcome = ""

    async def work(self) -> str:
        self.begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await asyncio.sleep(0.03)  # closing takes its time
            self.outcome = "cancelled"
            raise
        finally:
            self.ended.set()
        return "done"


def outcome_of(wait: Callable[[], Any]) -> Any:
    try:
        return wait()
    except (Stopped, TimedOut) as ended:
        return type(ended)


async def answer(value: object) -> object:
    return value


async def fail() -> None:
    raise ValueError("broken")


def test_the_answer_and_the_error_reach_the_thread(context: Context) -> None:
    assert context.run(answer(7)) == 7
    with pytest.raises(ValueError, match="broken"):
        context.run(fail())


def test_a_stop_cancels_what_the_attempt_waits_for(context: Context) -> None:
    slow = Slow()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome_of, lambda: context.run(slow.work()))
        assert slow.begun.wait(SOON)
        context.stop("cancelled")
        assert waiting.result(SOON) is Stopped
        assert slow.ended.is_set(), "an attempt ends after what it waited for"
    assert (slow.outcome, context.stop_reason) == ("cancelled", "cancelled")


def test_a_call_ends_with_the_attempts_time(calls: Calls) -> None:
    context = Context(replace(TASK, timeout_seconds=0.05), "worker-1", on_report=lambda _: None, calls=calls)
    context.begin()
    assert outcome_of(lambda: context.run(Slow().work())) is TimedOut


def test_a_call_of_the_store_is_made_again_until_it_is_answered() -> None:
    tries: list[int] = []

    async def intent(database: str, number: int, *, factor: int) -> tuple[str, int]:
        return database, number * factor

    def begin(call: Callable[[Any], Coroutine[Any, Any, Any]]) -> Future[Any]:
        tries.append(1)
        return failed() if len(tries) < 3 else answered(asyncio.run(call("database")))

    context = Context(TASK, "worker-1", on_report=lambda _: None, begin_asking=begin, settings=Settings())
    assert context.ask(intent, 3, factor=2) == ("database", 6)
    assert len(tries) == 3


def test_a_stop_ends_the_asking() -> None:
    def begin(_: object) -> Future[Any]:
        asking.stop()
        return failed()

    asking = Context(TASK, "worker-1", on_report=lambda _: None, begin_asking=begin, settings=Settings())
    with pytest.raises(Stopped):
        asking.ask(fail)


def answered(answer: Any) -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_result(answer)
    return future


def failed() -> "Future[Any]":
    future: Future[Any] = Future()
    future.set_exception(TimeoutError())
    return future
