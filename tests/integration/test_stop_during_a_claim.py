"""A worker that is told to stop while a claim of its own is under way starts nothing that nobody would stop."""

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from tests.support.engine.a_worker import Worker
from tests.support.engine.store import Engine
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.servers import databases
from tests.support.waiting import wait_until
from windlass.services.actors.worker.clock import boot_time
from windlass.shared.settings import Settings

THE_PROVIDER = "SELECT 1 FROM providers WHERE name = 'narrow' FOR NO KEY UPDATE"


@pytest.fixture
def start(database_url: str) -> Iterator[Callable[[], Worker]]:
    """Once the tests have made the database as they want it: a worker asks as soon as it is started."""
    started: list[Worker] = []

    def start() -> Worker:
        worker = Worker(Settings(database_url=database_url))
        started.append(worker)
        worker.writer.start()
        worker.writer.begin()
        return worker

    yield start
    for worker in started:
        worker.writer.close(timeout=60)
        worker.writer._loop.close()


def one_waits(database_url: str) -> bool:
    """Asked past the engine, which would wait for the provider, too."""
    waiting = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return len(databases.ask(database_url, waiting)) == 1


async def submit_to_a_guarded_provider(engine: Engine) -> UUID:
    await engine.provide("narrow", limit=5)
    return await engine.submit(provider="narrow")


def test_what_is_granted_while_the_worker_is_told_to_stop_is_handed_back(
    database_url: str, start: Callable[[], Worker]
) -> None:
    task_id = ask(database_url, submit_to_a_guarded_provider)
    with held_up(database_url, THE_PROVIDER):
        worker = start()
        wait_until("the claim waits", lambda: one_waits(database_url))
        # As a worker does it that is told to stop: nothing runs yet that could be asked to.
        worker.executor.closed = True
        worker.attempts.stop_all()
    worker.writer.stop_asking(timeout=60)
    assert len(worker.attempts) == 1, "the answer of the last call was waited for"
    assert not worker.take_up(worker.granted.get(timeout=60))
    assert ask(database_url, lambda engine: engine.status(task_id)) == "queued"
    assert ask(database_url, lambda engine: engine.story(task_id)) == ["submit", "claim", "interrupt"]
    assert len(worker.attempts) == 0


def test_an_answer_that_comes_when_its_lease_is_nearly_over_is_not_started(
    database_url: str, start: Callable[[], Worker]
) -> None:
    task_id = ask(database_url, lambda engine: engine.submit())
    worker = start()
    running = worker.granted.get(timeout=60)
    running.limiter._lasts_until = boot_time()
    assert not worker.take_up(running)
    assert ask(database_url, lambda engine: engine.story(task_id))[:3] == ["submit", "claim", "interrupt"]
