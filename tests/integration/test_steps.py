"""Durable steps on the real store: kept before they return, given back to later attempts, refused to who lost."""

import asyncio
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.attempting import Worker, a_worker
from tests.support.engine.store import Engine, empty_database
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.servers.private_servers import Servers
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.shared.errors import InvalidStep, ResultTooLarge
from windlass.shared.store.tasks.steps import finished_steps

ENOUGH = 10


@pytest.fixture
def engine_url(servers: Servers, migrated_template: str) -> str:
    return empty_database(servers.database_url, migrated_template)


@pytest.fixture
def worker(engine_url: str, tmp_path: Path) -> Iterator[Worker]:
    with a_worker(engine_url, tmp_path) as worker:
        yield worker


@pytest.fixture
def task_id(engine_url: str) -> UUID:
    return ask(engine_url, lambda engine: engine.submit())


def never() -> Any:
    raise AssertionError("a finished step runs again")


def test_a_later_attempt_is_given_what_an_earlier_one_came_to(worker: Worker, task_id: UUID) -> None:
    first = worker.claim(task_id)
    assert first.step("draft", lambda text, *, to: {"text": text, "to": to}, "hi", to="en") == {
        "text": "hi",
        "to": "en",
    }
    assert worker.kept(task_id) == {"draft": {"text": "hi", "to": "en"}}, "kept before it returned"
    second = worker.take_back(first)
    assert second.step("draft", never) == {"text": "hi", "to": "en"}
    assert second.step("nothing", lambda: None) is None
    third = worker.take_back(second)
    assert third.step("nothing", never) is None
    told = worker.events(task_id)
    assert [(each["name"], each["attempt"]) for each in told] == [("draft", 1), ("nothing", 2)]
    assert all(each.keys() == {"name", "attempt", "elapsed_ms"} for each in told)
    rows = ask(worker.engine_url, lambda engine: finished_steps(engine.pool, task_id))
    assert [(row.name, row.attempt) for row in rows] == [("draft", 1), ("nothing", 2)]


@dataclass
class Size:
    width: int
    measured_at: datetime


def measure() -> tuple[Size, ...]:
    return (Size(3, datetime(2026, 11, 18, tzinfo=UTC)),)


def test_a_result_has_its_annotated_type_in_each_attempt(worker: Worker, task_id: UUID) -> None:
    first = worker.claim(task_id)
    assert first.step("measure", measure) == measure()
    assert worker.kept(task_id) == {"measure": [{"width": 3, "measured_at": "2026-11-18T00:00:00Z"}]}
    assert worker.take_back(first).step("measure", measure) == measure()


def test_the_first_attempt_looks_for_nothing_and_a_later_one_once(worker: Worker, task_id: UUID) -> None:
    first = worker.claim(task_id)
    assert worker.asked == 0
    first.step("one", lambda: 1)
    assert worker.asked == 1
    second = worker.take_back(first)
    assert worker.asked == 1, "who calls no step asks nothing"
    second.step("one", never)
    second.step("two", lambda: 2)
    assert worker.asked == 3


def test_an_attempt_that_lost_its_claim_keeps_nothing_and_is_stopped(worker: Worker, task_id: UUID) -> None:
    lost = worker.claim(task_id)
    owner = worker.take_back(lost)
    with pytest.raises(Stopped):
        lost.step("draft", lambda: "mine")
    assert lost.stop_reason == "lost"
    assert worker.kept(task_id) == {}
    assert owner.step("draft", lambda: "the owner's") == "the owner's"
    assert worker.kept(task_id) == {"draft": "the owner's"}


def test_a_step_that_was_under_way_when_its_attempt_was_told_to_stop_is_kept(worker: Worker, task_id: UUID) -> None:
    context = worker.claim(task_id)

    def paid() -> str:
        context.stop("stopping")
        return "paid"

    with pytest.raises(Stopped):
        context.step("pay", paid)
    assert worker.kept(task_id) == {"pay": "paid"}
    with pytest.raises(Stopped):
        context.step("next", never)


def test_a_failed_step_is_not_kept_and_a_later_attempt_tries_again(worker: Worker, task_id: UUID) -> None:
    first = worker.claim(task_id)
    with pytest.raises(ZeroDivisionError):
        first.step("divide", lambda: 1 / 0)
    assert worker.take_back(first).step("divide", lambda: 1 / 2) == 0.5


def test_a_revived_task_keeps_its_finished_steps(worker: Worker, task_id: UUID) -> None:
    first = worker.claim(task_id)
    first.step("draft", lambda: "kept")

    async def die_and_live_again(engine: Engine) -> None:
        await engine.finish(first.task, "bury")
        assert await engine.revive(task_id) == "queued"

    ask(worker.engine_url, die_and_live_again)
    assert worker.claim(task_id).step("draft", never) == "kept"


def test_what_is_too_much_counts_over_all_attempts(worker: Worker, task_id: UUID) -> None:
    first = worker.claim(task_id)
    first.step("one", lambda: "x" * 600_000)
    second = worker.take_back(first)
    second.step("one", never)
    with pytest.raises(ResultTooLarge, match=r"step 'two' came to 500,002 bytes .* 600,002 .* 1,000,000"):
        second.step("two", lambda: "x" * 500_000)
    assert worker.kept(task_id).keys() == {"one"}


def test_a_secret_and_a_nul_are_kept_as_in_results(worker: Worker, task_id: UUID) -> None:
    given = worker.claim(task_id).step("ask", lambda: {"url": "https://me:hunter2@example.org", "text": "a\0b"})
    assert given == {"url": "https://[scrubbed]@example.org", "text": "a\N{REPLACEMENT CHARACTER}b"}
    assert worker.kept(task_id) == {"ask": given}, "what the first attempt is given is what later ones are"


def test_several_threads_of_a_later_attempt_take_steps_at_once(worker: Worker, task_id: UUID) -> None:
    first = worker.claim(task_id)
    assert [first.step(f"step {n}", lambda n=n: n) for n in range(2)] == [0, 1]
    second = worker.take_back(first)
    with ThreadPoolExecutor(4) as pool:
        done = pool.map(lambda n: second.step(f"step {n}", never if n < 2 else lambda: n), range(4))
        assert list(done) == [0, 1, 2, 3]
    assert worker.kept(task_id) == {f"step {n}": n for n in range(4)}


def test_async_steps_at_once_load_once_and_hold_up_nobody(worker: Worker, task_id: UUID) -> None:
    first = worker.claim(task_id)
    beats, in_the_way = 0, ExitStack()

    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    async def beat() -> None:
        nonlocal beats
        while True:
            beats += 1
            if beats == ENOUGH + 1:
                await asyncio.to_thread(in_the_way.close)
            await asyncio.sleep(0)

    async def work(context: Context, numbers: range) -> list[int]:
        beating = asyncio.create_task(beat())
        attempt = AsyncAttempt(context)
        done = [attempt.step(f"double {number}", double, number) for number in numbers]
        try:
            return list(await asyncio.gather(*done))
        finally:
            beating.cancel()

    with in_the_way:
        in_the_way.enter_context(held_up(worker.engine_url, "SELECT 1 FROM tasks FOR UPDATE"))
        assert asyncio.run(work(first, range(4))) == [0, 2, 4, 6]
    assert beats > ENOUGH, "the loop went on while the store was asked"
    asked = worker.asked
    second = worker.take_back(first)
    assert asyncio.run(work(second, range(5))) == [0, 2, 4, 6, 8]
    assert worker.asked == asked + 2, "one look for all, and one step was new"


def test_an_async_attempt_that_lost_its_claim_is_stopped(worker: Worker, task_id: UUID) -> None:
    lost = worker.claim(task_id)
    worker.take_back(lost)
    with pytest.raises(Stopped):
        asyncio.run(AsyncAttempt(lost).step("draft", asyncio.sleep, 0))
    assert lost.stop_reason == "lost"


def test_a_name_is_good_once_in_an_attempt(worker: Worker, task_id: UUID) -> None:
    context = worker.claim(task_id)
    context.step("page", lambda: 1)
    with pytest.raises(InvalidStep, match="two steps 'page' in one attempt"):
        context.step("page", lambda: 2)
