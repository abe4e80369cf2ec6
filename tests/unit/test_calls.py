"""Requests that an attempt waits for: they end with it, unless they must not be left half done."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.unit.test_context import TASK
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.shared.errors import TimedOut

SOON = 60


@pytest.fixture
def calls() -> Iterator[Calls]:
    calls = Calls(patience_seconds=SOON)
    calls.start()
    yield calls
    calls.patience_seconds = SOON
    calls.close()


@pytest.fixture
def context(calls: Calls) -> Context:
    return Context(TASK, "worker-1", on_report=lambda _: None, calls=calls)


class Slow:
    """Work that goes on until it is let go, and notes how it ended."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.ended = threading.Event()
        self.outcome = ""
        self._gate: asyncio.Event
        self._loop: asyncio.AbstractEventLoop

    async def work(self) -> str:
        self._gate, self._loop = asyncio.Event(), asyncio.get_running_loop()
        self.begun.set()
        try:
            await self._gate.wait()
            self.outcome = "finished"
        except asyncio.CancelledError:
            await asyncio.sleep(0.03)  # closing takes its time
            self.outcome = "cancelled"
            raise
        finally:
            self.ended.set()
        return "done"

    def let_go(self) -> None:
        self._loop.call_soon_threadsafe(self._gate.set)


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


def test_what_must_not_be_cut_is_given_time_to_finish(context: Context) -> None:
    slow = Slow()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(outcome_of, lambda: context.run(slow.work(), finish=True))
        assert slow.begun.wait(SOON)
        context.stop()
        slow.let_go()
        assert waiting.result(SOON) == "done"
    with pytest.raises(Stopped):
        context.check()


def test_patience_has_an_end(calls: Calls, context: Context) -> None:
    calls.patience_seconds = 0.2
    slow = Slow()
    context.stop()
    assert outcome_of(lambda: context.run(slow.work(), finish=True)) is Stopped
    assert slow.ended.wait(SOON)
    assert slow.outcome == "cancelled"


def test_a_call_ends_with_the_attempts_time(calls: Calls) -> None:
    context = Context(replace(TASK, timeout_seconds=0.05), "worker-1", on_report=lambda _: None, calls=calls)
    context.begin()
    assert outcome_of(lambda: context.run(Slow().work())) is TimedOut


def test_a_nudge_ends_a_sleep_once_also_when_it_came_before(context: Context) -> None:
    context.nudge()
    assert context.sleep_until_nudged(SOON)
    assert not context.sleep_until_nudged(0.01)
    with ThreadPoolExecutor(1) as pool:
        sleeping = pool.submit(context.sleep_until_nudged, SOON)
        context.nudge()
        assert sleeping.result(SOON / 2)


def test_a_call_of_the_store_is_made_again_until_it_is_answered() -> None:
    tries: list[int] = []

    async def intent(database: str, number: int, *, factor: int) -> tuple[str, int]:
        return database, number * factor

    def store(call: Callable[[Any], Coroutine[Any, Any, Any]]) -> Any:
        tries.append(1)
        if len(tries) < 3:
            raise TimeoutError
        return asyncio.run(call("database"))

    context = Context(TASK, "worker-1", on_report=lambda _: None, store=store)
    assert context.ask(intent, 3, factor=2) == ("database", 6)
    assert len(tries) == 3


def test_a_stop_ends_the_asking() -> None:
    def store(_: object) -> None:
        asking.stop()
        raise TimeoutError

    asking = Context(TASK, "worker-1", on_report=lambda _: None, store=store)
    with pytest.raises(Stopped):
        asking.ask(fail)
