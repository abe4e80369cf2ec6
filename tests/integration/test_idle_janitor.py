"""A janitor with nothing to do asks once for all its duties, and whatever there is to do is found by that look."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from tests.integration.test_duties import a_timer, premises_of, under_way, without
from tests.support.engine.graphs import bury
from tests.support.engine.keyed import set_key_limit, with_key
from tests.support.engine.memory import an_agent, catch_up, with_the_hash_model
from tests.support.engine.projects import Project
from tests.support.engine.store import Engine, on_the_engine, until
from tests.support.engine.webhooks import Endpoint, ready
from tests.support.engine.webhooks import catch_up as catch_up_on_webhooks
from windlass.services.janitor.calls import Calls
from windlass.services.janitor.premises import Premises
from windlass.services.janitor.table import DUTIES, duty_named
from windlass.services.janitor.wall import perform
from windlass.shared.features.projects import operations
from windlass.shared.filters import Filter
from windlass.shared.store.memory import jobs, models
from windlass.shared.store.operating.looks import look
from windlass.shared.store.tasks import bulk


async def stale(engine: Engine) -> None:
    await engine.lapse((await engine.running()).task_id)


async def expired(engine: Engine) -> None:
    await engine.outlive(await engine.submit(max_age_seconds=60))


async def approvals(engine: Engine) -> None:
    await engine.submit(approval={"message": "may it?", "expires_in_seconds": 60.0})
    await engine.sql("UPDATE tasks SET ask_expires_at = clock_timestamp()")


async def dependents(engine: Engine) -> None:
    parent = await engine.submit()
    await engine.submit_many(501, depends_on=[parent])
    await bury(engine, parent)


async def keys(engine: Engine) -> None:
    await set_key_limit(engine, 1)
    await engine.running(**with_key("a"))
    await engine.claim(await engine.submit(**with_key("a")))
    await set_key_limit(engine, 2)


async def projects(engine: Engine) -> None:
    """One that is being force-stopped."""
    project = await Project.made(engine, "one")
    await project.start()
    await operations.force_stop(engine.pool, project.project_id)


async def endpoints(engine: Engine) -> None:
    await ready(engine)
    await Endpoint.made(engine, "task.*")
    await engine.sql("UPDATE webhooks SET probe_at = clock_timestamp()")


async def probed_endpoints(engine: Engine) -> None:
    await ready(engine)
    await Endpoint.made(engine, "task.*")
    await engine.sql("UPDATE webhooks SET probe_at = clock_timestamp()")


async def bulk_jobs(engine: Engine) -> None:
    wanted = Filter(user_id="nobody")
    await bulk.accept(engine.pool, uuid4(), "cancel", wanted, matched=0, user_id="ann", scope_user_id=None)


async def memory(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await an_agent(engine, "remember this")
    await catch_up(engine)
    await engine.sql("UPDATE agent_events SET at = at - interval '1 min'")


async def new_model(engine: Engine) -> None:
    await with_the_hash_model(engine)
    await models.create(engine.pool, name="new", provider="hash", dimensions=256, activate_when_filled=True)


async def blocked(engine: Engine) -> None:
    await engine.submit(depends_on=[await engine.submit()])


async def questions(engine: Engine) -> None:
    await engine.sql(
        "INSERT INTO question_vectors VALUES (gen_random_uuid(), 'q', '{1}', clock_timestamp() - interval '2 h')"
    )


async def results(engine: Engine) -> None:
    await engine.sql(
        "INSERT INTO provider_results (provider, at, failed, task_id)"
        " VALUES ('probe', clock_timestamp() - interval '1 day', true, gen_random_uuid())"
    )


Situation = Callable[[Engine], Awaitable[None]]
FINISHED: dict[str, list[Situation]] = {
    "stale": [stale], "expired": [expired], "approvals": [approvals], "dependents": [dependents],
    "keys": [keys], "projects": [projects], "endpoints": [endpoints, probed_endpoints],
    "bulk": [bulk_jobs], "memory": [memory, new_model], "breakers": [results],
    "questions": [questions],
}  # fmt: skip
"""What each duty finds to do, and has done when it is done."""
ONLY_LOOKED_AT: dict[str, list[Situation]] = {"blocked": [blocked]}
SITUATIONS = [(name, make) for name, those in {**FINISHED, **ONLY_LOOKED_AT}.items() for make in those]


async def idle(engine: Engine) -> set[str]:
    return set((await look(engine.pool)).idle)


async def premises(engine: Engine) -> Premises:
    at = premises_of(engine)
    at.listening = engine.pool
    at.heard_at = await engine.pool.fetchval("SELECT clock_timestamp()")
    return at


@on_the_engine
async def test_in_an_empty_house_all_of_them_are_idle_and_each_is_a_duty(engine: Engine) -> None:
    await engine.provide("probe", limit=None)
    assert await idle(engine) == {name for name, _ in SITUATIONS}
    assert await idle(engine) <= {duty.name for duty in DUTIES}


@pytest.mark.parametrize(("name", "make"), SITUATIONS, ids=[f"{name}-{make.__name__}" for name, make in SITUATIONS])
@on_the_engine
async def test_what_there_is_to_do_is_found_and_nothing_more_when_it_is_done(
    engine: Engine, name: str, make: Situation
) -> None:
    await engine.provide("probe", limit=None)
    await make(engine)
    assert name not in await idle(engine)
    at = await premises(engine)

    async def is_idle() -> bool:
        assert (await perform(duty_named(name), at)).error is None
        await catch_up_on_webhooks(engine)
        return name in await idle(engine)

    if name in FINISHED:
        await until(is_idle)


@on_the_engine
async def test_a_call_that_was_lost_is_made_up_for_by_the_timer(engine: Engine) -> None:
    """Nobody listens when the parent ends; who listens later is called by the timer alone."""
    await dependents(engine)
    at = premises_of(engine)
    calls = Calls(at)
    heard: list[str] = []

    def call(name: str) -> None:
        heard.append(name)
        calls.call(name)

    async def is_made_up_for() -> bool:
        """Whoever is not done with the ones before may take it along, uncalled; then it is tried with another."""
        await engine.sql("INSERT INTO unsettled (parent_id, revived) SELECT task_id, false FROM tasks LIMIT 1")
        await until(is_settled(engine))
        return "dependents" in heard

    async with under_way(calls.listen()):
        await until(is_settled(engine))
        async with under_way(a_timer(at, call).run()):
            await until(is_made_up_for)
    assert "dependents" in heard


def is_settled(engine: Engine) -> Callable[[], Awaitable[bool]]:
    async def settled() -> bool:
        return not await engine.pool.fetchval("SELECT EXISTS (SELECT 1 FROM unsettled)")

    return settled


@on_the_engine
async def test_where_it_cannot_be_said_who_is_idle_the_stale_are_taken_back_all_the_same(engine: Engine) -> None:
    lost = await engine.running()
    await engine.lapse(lost.task_id)
    async with without(engine, "project_events"), under_way(a_timer(premises_of(engine)).run()):

        async def is_taken_back() -> bool:
            return await engine.status(lost.task_id) == "retrying"

        await until(is_taken_back)


@on_the_engine
async def test_an_idle_look_is_two_statements(engine: Engine) -> None:
    at = premises_of(engine)
    asked: list[Any] = []

    async def has_looked() -> bool:
        return len(asked) >= 2

    async with engine.pool.acquire() as connection:
        at.pool = connection
        with connection.query_logger(asked.append):
            async with under_way(a_timer(at).run()):
                await until(has_looked)
    assert [each.query.split()[0] for each in asked] == ["INSERT", "SELECT"]


@on_the_engine
async def test_an_event_wakes_the_janitor_and_waits_for_company(engine: Engine) -> None:
    await with_the_hash_model(engine)
    at = premises_of(engine)
    at.settings = at.settings.model_copy(update={"memory_gather_seconds": 0.2})
    calls = Calls(at)
    async with under_way(calls.listen(), calls.gather_memory()):

        async def is_listening() -> bool:
            return hasattr(at, "listening")

        await until(is_listening)
        await asyncio.gather(*(an_agent(engine, f"number {number}") for number in range(3)))
        await catch_up(engine)

        async def is_gathered() -> bool:
            return not await jobs.is_memory_waiting(engine.pool)

        await until(is_gathered)
