"""Suspects: few, for as long as there is reason, and never beside others."""

from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.flow import serve
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.api.access.auth import Caller
from windlass.services.api.tasks.why import explanation_of
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.operating import workers
from windlass.shared.store.tasks import Claimed, Refused

FEW = 8
QUEUES = ["probe.probe"]


async def lose(engine: Engine, *task_ids: UUID, worker: str = "worker-1", at_most: int = 500) -> None:
    """One worker runs all of them and dies; they wait again and are due."""
    for task_id in task_ids:
        await engine.start(task_id, worker=worker, alone=True)
    await die(engine, worker, at_most=at_most)
    await engine.become_due(*task_ids)


async def die(engine: Engine, worker: str, *, at_most: int = 500) -> None:
    while await tasks.stall(engine.pool, expired_for_seconds=None, dead_workers=[worker], at_most=at_most):
        pass


async def a_suspect(engine: Engine) -> UUID:
    task_id = await engine.submit()
    await lose(engine, task_id)
    await lose(engine, task_id)
    return task_id


async def is_suspected(engine: Engine, task_id: UUID) -> bool:
    (found,) = await engine.pool.fetch(
        f"SELECT {named('runs_alone')}(suspicion) AS it FROM tasks WHERE task_id = $1", task_id
    )
    return bool(found["it"])


async def why(engine: Engine, task_id: UUID) -> dict[str, Any]:
    caller = Caller("key", "admin", "root")
    return await explanation_of(engine.pool, await engine.row(task_id), caller, Settings())


@on_the_engine
async def test_who_lost_its_worker_twice_among_few_is_given_only_to_a_process_that_does_nothing_else(
    engine: Engine,
) -> None:
    task_id = await engine.submit()
    await lose(engine, task_id)
    assert not await is_suspected(engine, task_id), "once is an accident"
    await lose(engine, task_id)
    assert await engine.claim(task_id) == Refused(task_id, Reason.MUST_RUN_ALONE)
    assert await engine.status(task_id) == "retrying", "it waits, and does not sit in a worker"
    assert isinstance(await engine.claim(task_id, alone=True), Claimed)


@pytest.mark.parametrize(("number", "suspected"), [(FEW, True), (FEW + 1, False)])
@on_the_engine
async def test_who_was_among_many_is_not_suspected(engine: Engine, number: int, *, suspected: bool) -> None:
    together = await engine.submit_many(number)
    for _ in range(2):
        await lose(engine, *together)
    assert [await is_suspected(engine, each) for each in together] == [suspected] * number


@on_the_engine
async def test_the_last_of_many_that_are_taken_back_in_several_calls_were_not_few(engine: Engine) -> None:
    together = await engine.submit_many(12)
    for worker in ("worker-1", "worker-2"):
        await workers.register(engine.pool, worker, hostname="h", pid=1, queues=QUEUES, capacity=12)
        await lose(engine, *together, worker=worker, at_most=5)
    assert not any([await is_suspected(engine, each) for each in together])


@on_the_engine
async def test_only_the_worker_s_own_tasks_count(engine: Engine) -> None:
    for each in await engine.submit_many(10):
        await engine.start(each, worker="another")
    assert await is_suspected(engine, await a_suspect(engine))


@pytest.mark.parametrize("sign", ["progress", "a lease renewed for a while"])
@on_the_engine
async def test_a_loss_is_forgotten_once_the_task_has_run_well(engine: Engine, sign: str) -> None:
    task_id = await engine.submit()
    await lose(engine, task_id)
    attempt = await engine.start(task_id)
    if sign == "progress":
        assert await engine.say(attempt, progress={"message": "half way"})
    else:
        await engine.sql("UPDATE tasks SET started_at = started_at - interval '31 s' WHERE task_id = $1", task_id)
        assert await engine.renew(attempt) == [(True, False)]
    await die(engine, "worker-1")
    await engine.become_due(task_id)
    assert isinstance(await engine.claim(task_id), Claimed)


@on_the_engine
async def test_an_attempt_that_fails_by_itself_acquits_and_one_that_is_interrupted_does_not(engine: Engine) -> None:
    task_id = await a_suspect(engine)
    assert await engine.finish(await engine.start(task_id, alone=True), "interrupt") == "queued"
    assert await is_suspected(engine, task_id)
    assert await engine.finish(await engine.start(task_id, alone=True), "retry", retry_cost=1) == "retrying"
    assert not await is_suspected(engine, task_id)


@on_the_engine
async def test_a_new_life_is_without_suspicion(engine: Engine) -> None:
    task_id = await a_suspect(engine)
    await engine.cancel(task_id)
    await engine.revive(task_id)
    assert isinstance(await engine.claim(task_id), Claimed)


@on_the_engine
async def test_it_is_found_by_whoever_runs_alone(engine: Engine) -> None:
    task_id = await a_suspect(engine)
    assert await engine.claim(task_id) == Refused(task_id, Reason.MUST_RUN_ALONE)
    found = await tasks.next_alone(engine.pool, QUEUES)
    assert found is not None
    assert (found["task_id"], found["actor"]) == (task_id, "probe")
    assert await tasks.next_alone(engine.pool, ["probe.other"]) is None


@on_the_engine
async def test_without_a_free_slot_it_waits_as_everybody(engine: Engine) -> None:
    task_id = await a_suspect(engine)
    await engine.running()
    await engine.provide("probe", limit=1)
    assert await engine.claim(task_id, alone=True) == Refused(task_id, Reason.PROVIDER_LIMIT)


@on_the_engine
async def test_why_says_that_it_waits_for_a_process_of_its_own(engine: Engine) -> None:
    await serve(engine)
    first, second = await a_suspect(engine), await a_suspect(engine)
    answer = await why(engine, first)
    assert (answer["reason"], answer["details"]) == ("no-worker", {"runs_alone": True})
    assert "a process of its own" in answer["message"]
    await engine.start(first, alone=True)
    answer = await why(engine, second)
    assert (answer["reason"], answer["details"]["position"]) == ("behind-others", 2)
    assert answer["message"].endswith("1 such task came before it")


@on_the_engine
async def test_why_does_not_count_them_among_those_before_another(engine: Engine) -> None:
    await serve(engine, capacity=1)
    await a_suspect(engine)
    await engine.running()
    waiting = await engine.submit()
    answer = await why(engine, waiting)
    assert (answer["reason"], answer["details"]["position"]) == ("behind-others", 1)
