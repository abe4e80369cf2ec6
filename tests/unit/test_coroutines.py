"""Attempts on the loop, piece by piece: what belongs to one, when it is cancelled, and who holds up the others."""

import asyncio
import contextvars
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import replace
from typing import Any

import pytest

from tests.support.waiting import wait_until
from tests.unit.test_context import TASK
from windlass.services.actors.worker.calls import Calls
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.services.actors.worker.coroutines.belongings import OWNER, Belongings
from windlass.services.actors.worker.coroutines.loop_watch import LoopWatch, Stuck
from windlass.services.actors.worker.coroutines.tether import to_its_end
from windlass.services.actors.worker.ending.results import LITTLE_CHARACTERS, LITTLE_PIECES, is_little
from windlass.shared.errors import TimedOut

SOON = 20


@pytest.fixture
def calls() -> Iterator[Calls]:
    calls = Calls(patience_seconds=0.2)
    calls.start()
    yield calls
    calls.close()


def begin(calls: Calls, work: Coroutine[Any, Any, Any]) -> Belongings:
    """As an attempt of its own."""
    belongings = Belongings()

    def start() -> None:
        OWNER.set(belongings)
        belongings.__dict__["attempt"] = calls.loop.attempt(work, belongings)

    calls.loop.call_soon_threadsafe(start, context=contextvars.Context())
    return belongings


def run(calls: Calls, work: Coroutine[Any, Any, Any]) -> Any:
    """As an attempt of its own, to its result."""
    outcome: list[Any] = []
    is_over = threading.Event()

    async def noted() -> None:
        try:
            outcome.append(await work)
        except BaseException as error:  # noqa: BLE001 - raised again below
            outcome.append(error)
        is_over.set()

    begin(calls, noted())
    assert is_over.wait(SOON)
    if isinstance(outcome[0], BaseException):
        raise outcome[0]
    return outcome[0]


def a_context(calls: Calls, *, timeout_seconds: float = 60) -> Context:
    task = replace(TASK, timeout_seconds=timeout_seconds)
    context = Context(task, "worker-1", on_report=lambda _: None, calls=calls)
    context.begin()
    return context


# Who holds up the loop


def watched(calls: Calls, *, grace_seconds: float = 0.2, now: Callable[[], float] = time.monotonic) -> LoopWatch:
    return LoopWatch(calls.loop, calls.thread_id, grace_seconds=grace_seconds, now=now)


class Sibling:
    """Goes on and on, a step at a time."""

    def __init__(self) -> None:
        self.steps = 0

    async def work(self) -> None:
        while True:
            self.steps += 1
            await asyncio.sleep(0)


@pytest.fixture
def stuck_calls() -> Calls:
    """Whose thread ends with the tests' process: it waits for ever."""
    calls = Calls(patience_seconds=0.2)
    calls.start()
    return calls


def is_parked(calls: Calls) -> bool:
    frame = sys._current_frames()[calls.thread_id]
    while frame.f_back is not None:
        if frame.f_code.co_name == "_wait_until_it_is_open":
            return True
        frame = frame.f_back
    return False


def test_who_is_in_the_same_step_for_all_of_the_grace_is_the_culprit_and_nobody_steps_after_it(
    stuck_calls: Calls,
) -> None:
    calls, sibling, let_go, went_on = stuck_calls, Sibling(), threading.Event(), threading.Event()

    async def blocks() -> None:
        let_go.wait()
        went_on.set()

    begin(calls, sibling.work())
    wait_until("it goes on", lambda: sibling.steps > 3)
    culprit = begin(calls, blocks())
    watch = watched(calls)
    stuck: Stuck = wait_until("it is stuck", watch.look, every=0.02)
    assert stuck.culprit is culprit
    assert "in wait" in stuck.where
    before = sibling.steps
    let_go.set()
    assert went_on.wait(SOON), "its own step comes to its end"
    wait_until("the next step waits", lambda: is_parked(calls))
    assert sibling.steps == before


def test_a_loop_that_has_much_to_do_is_not_stuck(calls: Calls) -> None:
    async def takes_its_time() -> None:
        for _ in range(4):
            time.sleep(0.05)  # noqa: ASYNC251 - what this is about
            await asyncio.sleep(0)

    watch = watched(calls)
    for _ in range(20):
        begin(calls, takes_its_time())
    looks: list[Stuck | None] = []

    def look_until_all_have_ended() -> bool:
        looks.append(watch.look())
        return calls.loop.gate.steps >= 80

    wait_until("all have ended", look_until_all_have_ended, every=0.02)
    assert not any(looks), "a second and more for each round, and nobody is at fault"


def test_a_process_that_was_frozen_was_not_stuck(calls: Calls) -> None:
    now, let_go, begun = 0.0, threading.Event(), threading.Event()

    async def blocks() -> None:
        begun.set()
        let_go.wait()

    watch = watched(calls, grace_seconds=2.5, now=lambda: now)
    begin(calls, blocks())
    assert begun.wait(SOON)
    assert watch.look() is None
    now += 0.5
    assert watch.look() is None, "it has not answered since"
    now += 3600
    assert watch.look() is None, "of an hour without a look one second counts"
    now += 1
    assert watch.look() is None
    now += 0.5
    let_go.set()
    wait_until("it goes on", lambda: calls.loop.gate.owner is None)
    assert watch.look() is None


# What belongs to an attempt


def test_what_is_begun_in_another_context_is_not_the_attempts(calls: Calls) -> None:
    """As a connection that an actor keeps for those after it."""
    kept: list[asyncio.Task[None]] = []

    async def work() -> str:
        own = asyncio.create_task(asyncio.sleep(600))
        kept.append(asyncio.create_task(asyncio.sleep(600), context=contextvars.Context()))
        await asyncio.sleep(0)
        return "done" if not own.done() else ""

    context = a_context(calls)
    assert run(calls, to_its_end(context, work())) == "done"
    assert not kept[0].done()
    calls.loop.call_soon_threadsafe(kept[0].cancel)
    wait_until("it is over", kept[0].done)


def test_what_no_thread_has_begun_never_begins(calls: Calls) -> None:
    let_go, done = threading.Event(), list[int]()

    def on_a_thread(number: int) -> None:
        let_go.wait()
        done.append(number)

    async def work() -> None:
        loop = asyncio.get_running_loop()
        for number in range(40):
            loop.run_in_executor(None, on_a_thread, number)
        await asyncio.sleep(0)
        loop.call_later(0.05, let_go.set)

    run(calls, to_its_end(a_context(calls), work()))
    assert len(done) == 32, "as many as there are threads; the others were waiting"


# When it is cancelled


def test_its_time_stands_still_while_it_waits_for_others(calls: Calls) -> None:
    context = a_context(calls, timeout_seconds=0.3)

    async def work() -> str:
        with context.waiting_for_others():
            await asyncio.sleep(0.6)
        return "in time"

    assert run(calls, to_its_end(context, work())) == "in time"

    async def goes_on() -> None:
        with context.waiting_for_others():
            await asyncio.sleep(0)
        await asyncio.sleep(600)

    context = a_context(calls, timeout_seconds=0.3)
    with pytest.raises(TimedOut):
        run(calls, to_its_end(context, goes_on()))


def test_told_before_it_begins_it_never_does(calls: Calls) -> None:
    context, begun = a_context(calls), []
    context.stop()

    async def work() -> None:
        begun.append(True)

    with pytest.raises(Stopped):
        run(calls, to_its_end(context, work()))
    assert begun == []


def test_what_must_not_be_left_half_done_comes_to_its_end_and_the_cancel_after_it(calls: Calls) -> None:
    context, story = a_context(calls), []

    async def paid_for() -> str:
        story.append("ordered")
        context.stop()
        await asyncio.sleep(0.05)
        story.append("answered")
        return "job-1"

    async def work() -> None:
        story.append(await AsyncAttempt(context).finish(paid_for()))
        await asyncio.sleep(600)

    with pytest.raises(Stopped):
        run(calls, to_its_end(context, work()))
    assert story == ["ordered", "answered", "job-1"]


def test_what_takes_too_long_is_left(calls: Calls) -> None:
    context = a_context(calls)

    async def work() -> None:
        context.stop()
        await AsyncAttempt(context).finish(asyncio.sleep(600))

    with pytest.raises(Stopped):
        run(calls, to_its_end(context, work()))


def test_a_nudge_wakes_who_sleeps(calls: Calls) -> None:
    context = a_context(calls)

    async def work() -> list[bool]:
        attempt = AsyncAttempt(context)
        context.nudge()
        before = await attempt.sleep_until_nudged(600)
        asyncio.get_running_loop().call_later(0.05, context.nudge)
        return [before, await attempt.sleep_until_nudged(600), await attempt.sleep_until_nudged(0.01)]

    assert run(calls, to_its_end(context, work())) == [True, True, False]


# What is large


@pytest.mark.parametrize(
    ("result", "little"),
    [
        (None, True),
        ({"a": [1, 2, {"b": "c"}]}, True),
        ("x" * (LITTLE_CHARACTERS + 1), False),
        ([0] * (LITTLE_PIECES + 1), False),
        ({"deep": [[[["x" * LITTLE_CHARACTERS, "y"]]]]}, False),
    ],
)
def test_what_is_written_by_a_thread(result: Any, *, little: bool) -> None:
    assert is_little(result) is little
