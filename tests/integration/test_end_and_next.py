"""A worker's call that ends and asks: its connection is cut before, in and after its commit, and it comes late."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.a_worker import Worker
from tests.support.engine.store import Engine
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.servers import databases
from tests.support.servers.forwarder import Forwarders
from tests.support.waiting import wait_until
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.operating import workers

THE_PROVIDER = "SELECT 1 FROM providers WHERE name = 'narrow' FOR NO KEY UPDATE"
WAITING = """
SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
  AND application_name LIKE 'windlass-actors-writer %' AND query LIKE '%end_and_next%'
"""
"""The end; what the worker asks for besides may wait as well."""
TASKS = 3


async def three_at_a_limit_of_one(engine: Engine) -> list[UUID]:
    await engine.provide("narrow", limit=1)
    await workers.register(
        engine.pool, "worker-1", hostname="h", pid=1, queues=["probe.probe", "probe.narrow"], capacity=2
    )
    return await engine.submit_many(TASKS, provider="narrow")


@pytest.fixture
def worker(database_url: str) -> Iterator[Worker]:
    """Of two places; three tasks wait, of which one may run at a time, and the first was granted."""
    ask(database_url, three_at_a_limit_of_one)
    worker = Worker(Settings(database_url=database_url), places=2)
    worker.writer.start()
    worker.writer.begin()
    worker.hear("probe.narrow", 64)
    yield worker
    worker.writer.close(timeout=60)
    worker.writer._loop.close()


def all_complete(database_url: str, worker: Worker) -> None:
    """Each once, in one attempt, and never two at a time."""
    for _ in range(TASKS):
        worker.finish(worker.granted.get(timeout=30))

    async def look(engine: Engine) -> None:
        rows = await engine.pool.fetch("SELECT task_id, status, attempt FROM tasks ORDER BY task_id")
        assert [(row["status"], row["attempt"]) for row in rows] == [("completed", 1)] * TASKS
        for row in rows:
            assert await engine.story(row["task_id"]) == ["submit", "claim", "complete"]

    ask(database_url, look)
    assert worker.granted.empty()


def test_without_a_fault_each_end_brings_the_next(
    database_url: str, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = tasks.end_and_next
    calls: list[int] = []

    async def counted(*arguments: Any, **options: Any) -> Any:
        answer = await together(*arguments, **options)
        calls.append(len(answer[1].claimed))
        return answer

    monkeypatch.setattr(tasks, "end_and_next", counted)
    all_complete(database_url, worker)
    assert calls[:2] == [1, 1], "the next was given by the call that ended the one before"


def test_cut_before_its_commit_the_end_goes_alone_and_the_next_is_asked_for_again(
    database_url: str, worker: Worker
) -> None:
    running = worker.granted.get(timeout=30)
    with ThreadPoolExecutor(1) as pool, held_up(database_url, THE_PROVIDER):
        finishing = pool.submit(worker.finish, running)
        (row,) = wait_until("it waits", lambda: databases.ask(database_url, WAITING))
        databases.execute(database_url, f"SELECT pg_terminate_backend({row[0]})")
        wait_until("it waits no more", lambda: row[0] not in {each[0] for each in databases.ask(database_url, WAITING)})
        finishing.result(30)
    assert ask(database_url, lambda engine: engine.status(running.context.task_id)) == "completed"
    for _ in range(TASKS - 1):
        worker.finish(worker.granted.get(timeout=30))
    assert ask(database_url, lambda engine: engine.count("status = 'completed' AND attempt = 1")) == TASKS


@pytest.mark.parametrize("fault", ["after its commit", "late"])
def test_an_answer_that_is_lost_loses_and_doubles_nothing(
    database_url: str, worker: Worker, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Lost after the commit, it has been done. Late, it comes when it was recalled already: it ends nothing twice, and
    is given nothing."""
    together = tasks.end_and_next
    late: list[Callable[[], Any]] = []

    async def lossy(*arguments: Any, **options: Any) -> Any:
        monkeypatch.setattr(tasks, "end_and_next", together)
        if fault == "late":
            late.append(lambda: together(*arguments, **options))
        else:
            await together(*arguments, **options)
        raise ConnectionError("the answer is lost")

    monkeypatch.setattr(tasks, "end_and_next", lossy)
    running = worker.granted.get(timeout=30)
    worker.finish(running)
    following = worker.granted.get(timeout=30)
    for call in late:
        statuses, granted = asyncio.run_coroutine_threadsafe(call(), worker.writer._loop).result(30)
        assert (statuses, granted.claimed) == (["completed"], [])
    worker.granted.put(following)
    monkeypatch.setattr(tasks, "end_and_next", together)
    for _ in range(TASKS - 1):
        worker.finish(worker.granted.get(timeout=30))
    assert ask(database_url, lambda engine: engine.count("status = 'completed' AND attempt = 1")) == TASKS
    assert ask(database_url, lambda engine: engine.story(running.context.task_id)) == ["submit", "claim", "complete"]


def test_cut_in_the_midst_of_it_the_call_is_done_all_the_same_and_nothing_is_doubled(database_url: str) -> None:
    """The server does not see that its client has gone before it has committed: what it granted is recalled."""
    ask(database_url, three_at_a_limit_of_one)
    with Forwarders().running() as forwarders:
        link = forwarders.to(database_url)
        worker = Worker(Settings(database_url=link.url), places=2)
        worker.writer.start()
        worker.writer.begin()
        running = worker.granted.get(timeout=30)
        with ThreadPoolExecutor(1) as pool:
            with held_up(database_url, THE_PROVIDER):
                finishing = pool.submit(worker.finish, running)
                (row,) = wait_until("it waits", lambda: databases.ask(database_url, WAITING))
                link.reset()
                assert row[0] in {each[0] for each in databases.ask(database_url, WAITING)}
            finishing.result(30)
        for _ in range(TASKS - 1):
            worker.finish(worker.granted.get(timeout=30))
        worker.writer.close(timeout=60)
        worker.writer._loop.close()
    assert ask(database_url, lambda engine: engine.count("status = 'completed' AND attempt = 1")) == TASKS
    assert ask(database_url, lambda engine: engine.story(running.context.task_id)) == ["submit", "claim", "complete"]


async def ten_thousand_and_room_for_another(engine: Engine) -> None:
    await engine.provide("narrow", limit=None)
    await engine.sql(
        """
        INSERT INTO tasks (task_id, actor, provider, status, timeout_seconds, user_id, available_at)
        SELECT gen_random_uuid(), 'probe', 'probe', 'queued', 1, 'ann', now() FROM generate_series(1, 10000)
        """
    )


def test_while_ten_thousand_wait_one_of_another_queue_starts_soon(database_url: str) -> None:
    """Within two calls: the place that becomes free next, or the one after it, asks for the other queue."""
    ask(database_url, ten_thousand_and_room_for_another)
    worker = Worker(Settings(database_url=database_url), places=2)
    worker.writer.start()
    worker.writer.begin()
    running = [worker.granted.get(timeout=30) for _ in range(2)]
    other = ask(database_url, lambda engine: engine.submit(provider="narrow"))
    worker.hear("probe.probe", 64)
    worker.hear("probe.narrow", 1)
    given = []
    for attempt in running:
        worker.finish(attempt)
        given.append(worker.granted.get(timeout=30).context.task_id)
    worker.writer.close(timeout=60)
    worker.writer._loop.close()
    assert other in given
