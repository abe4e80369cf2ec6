"""A worker whose task is of a workflow: its end brings the next as a plain one does, and a locked workflow holds up
nobody else."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.engine.a_worker import Worker
from tests.support.engine.store import Engine
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.engine.workflows import a_workflow
from tests.support.waiting import wait_until
from windlass.shared.settings import Settings
from windlass.shared.store import tasks

TASKS = 3
THE_WORKFLOW = "SELECT 1 FROM workflows FOR NO KEY UPDATE"


async def three_of_a_workflow(engine: Engine) -> None:
    await a_workflow(engine, {f"t{number}": () for number in range(TASKS)})


@pytest.fixture
def worker(database_url: str) -> Iterator[Worker]:
    """Of one place."""
    ask(database_url, three_of_a_workflow)
    worker = Worker(Settings(database_url=database_url))
    worker.writer.start()
    worker.writer.begin()
    worker.hear("probe.probe", 64)
    yield worker
    worker.writer.close(timeout=60)
    worker.writer._loop.close()


def all_completed_once(database_url: str) -> bool:
    return ask(database_url, lambda engine: engine.count("status = 'completed' AND attempt = 1")) == TASKS


def test_the_end_of_a_workflows_task_brings_the_next(
    database_url: str, worker: Worker, monkeypatch: pytest.MonkeyPatch
) -> None:
    together = tasks.end_and_next
    given: list[int] = []

    async def counted(*arguments: Any, **options: Any) -> Any:
        answer = await together(*arguments, **options)
        given.append(len(answer[1].claimed))
        return answer

    monkeypatch.setattr(tasks, "end_and_next", counted)
    for _ in range(TASKS):
        worker.finish(worker.granted.get(timeout=30))
    assert any(given), "the first may be quicker than the credit"
    assert all_completed_once(database_url)


def test_an_end_whose_workflow_is_locked_grants_nothing_and_is_not_recalled(
    database_url: str, worker: Worker, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The call was rolled back whole, as the worker knows: it goes again by itself, and the credit is still there."""
    recalled: list[Any] = []
    recall = tasks.recall

    async def noted(*arguments: Any, **options: Any) -> Any:
        recalled.append(arguments)
        return await recall(*arguments, **options)

    monkeypatch.setattr(tasks, "recall", noted)
    running = worker.granted.get(timeout=30)
    with ThreadPoolExecutor(1) as pool:
        with held_up(database_url, THE_WORKFLOW):
            finishing = pool.submit(worker.finish, running)
            wait_until("it is put aside", lambda: "1 writes go on one by one" in caplog.text)
            assert worker.granted.empty()
        finishing.result(30)
    for _ in range(TASKS - 1):
        worker.finish(worker.granted.get(timeout=30))
    assert all_completed_once(database_url)
    assert recalled == []
