"""What a grant's tasks refer to is asked for once for all of them, before they begin."""

import queue
from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.a_worker import Worker
from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.store_from_threads import ask
from windlass.services.actors.worker.writing import writer as module
from windlass.shared.concerns import Concern
from windlass.shared.settings import Settings
from windlass.shared.store.workflows import inputs

TASKS = 3
REFERS = {"concerns": Concern.REFERENCES.value}


async def three_that_refer(engine: Engine) -> list[UUID]:
    source = await engine.running()
    await engine.finish(source, result=["a", "b", "c"])
    return [
        await engine.submit(
            depends_on=[source.task_id],
            payload={"result": {"$from": str(source.task_id), "path": f"/{number}"}},
            **REFERS,
        )
        for number in range(TASKS)
    ]


@pytest.fixture
def worker(database_url: str) -> Iterator[Worker]:
    ask(database_url, three_that_refer)
    patient = Settings(database_url=database_url, stop_grace_seconds=60, lease_seconds=180)
    worker = Worker(patient, places=2 * TASKS)  # two queues share them
    worker.writer.start()
    yield worker
    worker.writer.close(timeout=60)
    worker.writer._loop.close()


def test_all_of_a_grant_have_theirs_when_they_begin(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []

    async def counted(db: Any, task_ids: Any, **options: Any) -> Any:
        asked.append(len(task_ids))
        return await inputs.resolve_many(db, task_ids, **options)

    monkeypatch.setattr(module, "resolve_many", counted)
    worker.writer.begin()
    granted = [worker.granted.get(timeout=30).context.task for _ in range(TASKS)]
    assert sorted(task.payload["result"] for task in granted) == ["a", "b", "c"]
    assert all(task.has_input for task in granted)
    assert asked == [TASKS]


def test_who_is_not_answered_begins_and_asks_for_itself(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise ConnectionError

    monkeypatch.setattr(module, "resolve_many", away)
    worker.writer.begin()
    granted = [worker.granted.get(timeout=30).context.task for _ in range(TASKS)]
    assert not any(task.has_input for task in granted)
    assert all("$from" in task.payload["result"] for task in granted)


def test_whoever_stops_waits_for_those_that_are_about_to_begin(worker: Worker, monkeypatch: pytest.MonkeyPatch) -> None:
    worker.writer.begin()
    first = worker.granted.get(timeout=30)
    worker.writer.stop_asking(timeout=30)
    others = [worker.granted.get_nowait() for _ in range(TASKS - 1)]
    assert len({each.context.task_id for each in (first, *others)}) == TASKS
    with pytest.raises(queue.Empty):
        worker.granted.get_nowait()


@on_the_engine
async def test_what_is_too_much_for_one_answer_is_left_to_each(engine: Engine) -> None:
    source = await engine.running()
    await engine.finish(source, result={"large": "x" * inputs.AT_ONCE_BYTES, "small": 1})
    named = {"$from": str(source.task_id), "path": "/large"}
    large = [await engine.submit(depends_on=[source.task_id], payload={"result": named}, **REFERS) for _ in range(3)]
    wrong = await engine.submit(
        depends_on=[source.task_id], payload={"result": {**named, "path": "/nothing"}}, **REFERS
    )
    found = await inputs.resolve_many(engine.pool, [wrong, *large], largest_bytes=8_000_000)
    assert list(found) == large[:1], "nor is what has something wrong with it answered here"
