"""A task that cannot be claimed, whatever the reason, holds up nobody who waits behind it."""

from collections.abc import Iterator
from uuid import UUID, uuid4

import pytest

from tests.support.engine.a_worker import Worker
from tests.support.engine.dispatching import start_next
from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.store_from_threads import ask
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Ask

LOCKED = "SELECT 1 FROM tasks WHERE task_id = ANY ($1) FOR NO KEY UPDATE"
A_FAULT = "ALTER TABLE tasks ADD CONSTRAINT a_fault CHECK (status <> 'running' OR priority > 0) NOT VALID"
"""The most urgent cannot start, for a reason that the engine does not know of."""


async def one_before_the_others(engine: Engine, limit: int | None) -> tuple[UUID, list[UUID]]:
    await engine.provide("probe", limit=limit)
    first = await engine.submit(priority=0)
    return first, await engine.submit_many(3, priority=2)


@pytest.mark.parametrize("limit", [None, 1])
@on_the_engine
async def test_one_whose_row_is_locked_for_long_is_passed_over(engine: Engine, limit: int | None) -> None:
    """Alone in its lane and priority: nobody stands there whom a claim could take in its place."""
    first, others = await one_before_the_others(engine, limit)
    async with engine.holding(LOCKED, [first, others[0]]):
        (attempt,) = await start_next(engine, 1)
    assert attempt.task_id == others[1]
    await engine.finish(attempt)
    assert [each.task_id for each in await start_next(engine, 1)] == [first]


@on_the_engine
async def test_where_all_that_may_start_is_locked_nothing_does_and_the_claim_comes_to_an_end(engine: Engine) -> None:
    first, others = await one_before_the_others(engine, 2)
    async with engine.holding(LOCKED, [first, *others]):
        assert await start_next(engine, 2) == []


@on_the_engine
async def test_an_open_job_whose_row_is_locked_holds_up_no_other(engine: Engine) -> None:
    await engine.provide("probe", limit=2)
    first, second = await engine.submit_many(2)
    await engine.sql("UPDATE tasks SET job_open = true, attempt = 1")
    async with engine.holding(LOCKED, [first]):
        assert [each.task_id for each in await start_next(engine, 1)] == [second]


@on_the_engine
async def test_what_is_handed_back_for_another_version_lets_the_others_go_first(engine: Engine) -> None:
    first, others = await one_before_the_others(engine, 1)
    (attempt,) = await start_next(engine, 1)
    assert attempt.task_id == first
    await engine.finish(attempt, "interrupt", delay_seconds=60)
    assert [each.task_id for each in await start_next(engine, 1)] == others[:1]


def test_who_cannot_be_claimed_is_found_out_and_nothing_of_it_stays(database_url: str) -> None:
    async def test(engine: Engine) -> None:
        first, others = await one_before_the_others(engine, 2)
        waiting = await engine.submit(priority=0)
        await engine.sql("UPDATE tasks SET job_open = true, attempt = 1 WHERE task_id = $1", waiting)
        await engine.sql(A_FAULT)
        found = await tasks.unclaimable(engine.pool, "worker-1", ["probe.probe"], aside=[])
        assert set(found) == {first, waiting}
        assert "a_fault" in found[first]
        assert await engine.count("status = 'running'") == 0
        assert await engine.story(others[0]) == ["submit"]
        asked = Ask({"probe.probe": 1}, [uuid4()], aside=list(found))
        (attempt,) = (await tasks.claim_next(engine.pool, "worker-1", asked, 30)).claimed
        assert attempt.task_id == others[0]

    ask(database_url, test)


@pytest.fixture
def worker(database_url: str) -> Iterator[Worker]:
    worker = Worker(Settings(database_url=database_url))
    worker.writer.start()
    yield worker
    worker.writer.close(timeout=60)
    worker.writer._loop.close()


def test_a_worker_passes_over_who_cannot_be_claimed_tells_of_it_and_tries_again(
    database_url: str, worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("windlass.services.actors.worker.starting.starts.AGAIN_AFTER_A_FAULT_SECONDS", 3600)
    first, others = ask(database_url, lambda engine: one_before_the_others(engine, 1))
    ask(database_url, lambda engine: engine.sql(A_FAULT))
    worker.writer.begin()
    for task_id in others:
        running = worker.granted.get(timeout=60)
        assert running.context.task_id == task_id
        worker.finish(running)
    assert f"task {first} could not be claimed" in caplog.text
    ask(database_url, lambda engine: engine.sql("ALTER TABLE tasks DROP CONSTRAINT a_fault"))
    monkeypatch.setattr("windlass.services.actors.worker.starting.aside.Aside.now", lambda _self: [])
    worker.hear("probe.probe", 1)
    assert worker.granted.get(timeout=60).context.task_id == first
