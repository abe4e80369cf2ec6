"""What is counted of actors: steps by what came of them, tasks left to another version, and the versions alive."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.attempting import Worker, a_worker
from tests.support.engine.store import Engine, empty_database, on_the_engine
from tests.support.engine.store_from_threads import ask
from tests.support.servers.private_servers import Servers
from windlass.services.actors.worker.context.context import Stopped
from windlass.services.actors.worker.ending.refusals import ForAnotherVersion, refusal_of
from windlass.shared.actors.definition import Definition
from windlass.shared.errors import InvalidInput
from windlass.shared.metrics.actors import FOR_ANOTHER_VERSION, STEPS
from windlass.shared.store.operating import registry, workers

HEARD = 30.0
ANYTHING = Definition(name="probe", payload_schema={"type": "object"}, provider="probe", module="ours")
NOTHING = Definition(name="probe", payload_schema={"type": "object", "maxProperties": 0}, provider="probe")


@pytest.fixture
def worker(servers: Servers, migrated_template: str, tmp_path: Path) -> Iterator[Worker]:
    with a_worker(empty_database(servers.database_url, migrated_template), tmp_path) as worker:
        yield worker


@pytest.fixture
def task_id(worker: Worker) -> UUID:
    return ask(worker.engine_url, lambda engine: engine.submit())


def steps() -> dict[str, float]:
    """The counters are the whole process' own."""
    return {result: STEPS.labels("probe", result)._value.get() for result in ("run", "given_back")}


async def comes(engine: Engine, worker_id: str, *definitions: Definition) -> None:
    await registry.announce(engine.pool, definitions)
    versions = {each.name: each.version for each in definitions}
    facts: dict[str, Any] = {"hostname": "h", "pid": 1, "queues": [], "capacity": 1, "actor_versions": versions}
    await workers.register(engine.pool, worker_id, **facts)


def test_steps_are_counted_by_what_came_of_them_once_they_are_kept(worker: Worker, task_id: UUID) -> None:
    before = steps()

    def since() -> dict[str, float]:
        return {result: now - before[result] for result, now in steps().items()}

    first = worker.claim(task_id)
    first.step("draft", lambda: "hi")
    assert since() == {"run": 1, "given_back": 0}
    second = worker.take_back(first)
    second.step("draft", lambda: "hi again")
    second.step("polish", lambda: "hi!")
    assert since() == {"run": 2, "given_back": 1}
    with pytest.raises(Stopped):
        first.step("late", lambda: "what nobody keeps")
    assert since() == {"run": 2, "given_back": 1}


def test_what_is_left_to_another_version_is_counted_and_what_nobody_takes_is_not(worker: Worker, task_id: UUID) -> None:
    context = worker.claim(task_id)

    def refused() -> BaseException:
        return refusal_of(context, NOTHING.version, "there is something in it", heard_within_seconds=HEARD)

    def counted() -> float:
        return float(FOR_ANOTHER_VERSION.labels("probe")._value.get())

    before = counted()
    ask(worker.engine_url, lambda engine: comes(engine, "new", NOTHING))
    assert isinstance(refused(), InvalidInput)
    assert counted() == before
    ask(worker.engine_url, lambda engine: comes(engine, "old", ANYTHING))
    assert isinstance(refused(), ForAnotherVersion)
    assert counted() == before + 1


@on_the_engine
async def test_versions_are_those_that_live_workers_run(engine: Engine) -> None:
    async def alive() -> dict[str, int]:
        rows = await registry.alive(engine.pool, heard_within_seconds=HEARD)
        return {row.actor: row.versions for row in rows}

    await registry.register(engine.pool, [ANYTHING])
    assert await alive() == {"probe": 0}
    await comes(engine, "one", ANYTHING)
    await comes(engine, "two", ANYTHING)
    assert await alive() == {"probe": 1}
    await comes(engine, "three", NOTHING)
    assert await alive() == {"probe": 2}
    await workers.leave(engine.pool, "three", state="stopping", reason="told to")
    assert await alive() == {"probe": 1}, "it takes nothing new"
    await engine.pool.execute("UPDATE workers SET heartbeat_at = now() - interval '1 hour'")
    assert await alive() == {"probe": 0}
