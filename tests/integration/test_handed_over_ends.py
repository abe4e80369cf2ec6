"""Nobody waits for the answer to an end: the thread is free, and the lease is kept until the answer is there."""

import threading
from collections.abc import Callable, Iterator
from uuid import UUID

import pytest

from tests.support.engine.a_worker import Worker
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.waiting import wait_until
from windlass.services.actors.worker.executor import Running
from windlass.shared.settings import Settings

A_TASK = "SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE"


@pytest.fixture
def start(database_url: str) -> Iterator[Callable[[], Worker]]:
    """Once there is something to start."""
    started: list[Worker] = []

    def start() -> Worker:
        worker = Worker(Settings(database_url=database_url), places=2)
        started.append(worker)
        worker.writer.start()
        worker.writer.begin()
        return worker

    yield start
    for worker in started:
        worker.writer.close(timeout=60)
        worker.writer._loop.close()


def take_up(worker: Worker) -> tuple[Running, UUID, threading.Event]:
    running = worker.granted.get(timeout=60)
    is_answered = threading.Event()
    running.on_answered = is_answered.set
    assert worker.executor.take_up(running)
    return running, running.context.task_id, is_answered


def status(database_url: str, task_id: UUID) -> str:
    return ask(database_url, lambda engine: engine.status(task_id))


def test_who_ran_it_is_free_at_once_and_its_lease_is_renewed_until_the_answer_is_there(
    database_url: str, start: Callable[[], Worker], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", "actors")
    ask(database_url, lambda engine: engine.submit_many(2))
    worker = start()
    running, task_id, is_answered = take_up(worker)
    with held_up(database_url, A_TASK, task_id):
        worker.executor.end(running, None)
        assert list(worker.attempts.leases().values()).count(task_id) == 1, "what renews leases still knows it"
        assert len(worker.attempts) > 0, "and so does who stops the worker: it waits for the answer"
        other, other_id, other_is_answered = take_up(worker)  # by the same thread
        assert not is_answered.is_set()
        assert f"{task_id}: attempt 1 completed" not in caplog.text, "told when it is so"
    assert is_answered.wait(60)
    assert status(database_url, task_id) == "completed"
    assert f"{task_id}: attempt 1 completed" in caplog.text
    worker.executor.end(other, ValueError("it is told as well"))
    assert other_is_answered.wait(60)
    assert f"{other_id}: attempt 1 ended" in caplog.text
    wait_until("nothing is left", lambda: len(worker.attempts) == 0)


def test_a_result_that_cannot_be_stored_ends_as_a_failure_and_holds_up_nobody(
    database_url: str, start: Callable[[], Worker]
) -> None:
    ask(database_url, lambda engine: engine.submit_many(2))
    worker = start()
    bad, bad_id, bad_is_answered = take_up(worker)
    good, good_id, good_is_answered = take_up(worker)
    bad.result = object()
    worker.executor.end(bad, None)
    worker.executor.end(good, None)
    assert bad_is_answered.wait(60)
    assert good_is_answered.wait(60)
    assert (status(database_url, bad_id), status(database_url, good_id)) == ("retrying", "completed")
    assert len(worker.attempts) == 0
