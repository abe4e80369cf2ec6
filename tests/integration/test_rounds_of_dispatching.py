"""A dispatcher goes on until everything is rung for that may start, also when that is more than one look counts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.engine.flow import serve
from tests.support.engine.store import Engine, a_submission, on_the_engine, until
from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.dispatch import dispatch_due
from windlass.services.dispatcher.main import Dispatcher
from windlass.services.dispatcher.publisher import Publisher
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control.providers import DUE_COUNTED
from windlass.shared.store.functions import named


@asynccontextmanager
async def a_publisher(settings: Settings) -> AsyncIterator[Publisher]:
    publisher = Publisher(settings)
    connecting = asyncio.create_task(publisher.keep_connected())
    try:
        await asyncio.wait_for(publisher.takes_messages.wait(), 20)
        yield publisher
    finally:
        connecting.cancel()
        await asyncio.wait([connecting])


@on_the_engine
async def test_what_one_look_does_not_count_is_rung_for_in_the_next_round_at_once(
    engine: Engine, amqp_url: str
) -> None:
    settings = Settings(amqp_url=amqp_url)
    await serve(engine, capacity=1000)
    await engine.submit_many(DUE_COUNTED + 1)
    async with a_publisher(settings) as publisher:
        assert await dispatch_due(engine.pool, publisher, RetryBacklog(settings.lanes), settings), "there is more to do"
        assert await engine.count("doorbell_count = 1") == DUE_COUNTED
        assert not await dispatch_due(engine.pool, publisher, RetryBacklog(settings.lanes), settings)
        assert await engine.count("doorbell_count = 1") == DUE_COUNTED + 1


@on_the_engine
async def test_a_look_at_those_who_were_named_rings_for_nobody_else(engine: Engine, amqp_url: str) -> None:
    settings = Settings(amqp_url=amqp_url)
    for name in ("one", "two"):
        await engine.provide(name, limit=None)
        await engine.submit(provider=name)
    async with a_publisher(settings) as publisher:
        await dispatch_due(engine.pool, publisher, RetryBacklog(settings.lanes), settings, only={"two"})
        assert await engine.count("doorbell_count = 1 AND provider = 'two'") == 1
        assert await engine.count("doorbell_count = 1") == 1


@on_the_engine
async def test_calls_for_one_provider_do_not_put_off_what_becomes_due_at_another(engine: Engine, amqp_url: str) -> None:
    settings = Settings(amqp_url=amqp_url, database_url=engine.database_url, safety_poll_seconds=600)
    await engine.provide("busy", limit=0)
    later = await engine.submit(delay_seconds=0.5)
    dispatching = asyncio.create_task(Dispatcher(settings, engine.pool).run())

    async def is_rung_for() -> bool:
        await engine.submit(provider="busy")
        return bool((await engine.row(later))["doorbell_count"] == 1)

    try:
        await until(is_rung_for, seconds=60)
    finally:
        dispatching.cancel()
        await asyncio.wait([dispatching])


@on_the_engine
async def test_every_move_names_whose_tasks_it_moved(engine: Engine) -> None:
    for name in ("one", "two", "three"):
        await engine.provide(name, limit=None)
    async with engine.listening("windlass_dispatch") as heard:
        parent = await engine.submit(provider="one")
        child = await engine.submit(provider="two", depends_on=[parent])
        await tasks.submit(engine.pool, [a_submission(provider=name) for name in ("three", "one", "three")])
    assert heard == ["one", "two", "one\nthree"]
    async with engine.listening("windlass_dispatch") as heard:
        await engine.finish(await engine.start(parent))
    assert set(heard) == {"one", "two"}, "and of whom may start by it"
    async with engine.listening("windlass_dispatch") as heard:
        await engine.cancel(child)
        await engine.revive(child)
    assert heard == ["two", "two"]


@on_the_engine
async def test_too_many_names_are_everybody(engine: Engine) -> None:
    """A notice has room for 8,000 bytes."""
    async with engine.listening("windlass_dispatch") as heard:
        for number in (100, 200):
            names = [f"{'provider' * 4}-{each}" for each in range(number)]
            await engine.sql(f"SELECT {named('wake_dispatcher')}($1::text[])", names)
    few, many = heard
    assert len(few.split("\n")) == 100
    assert many == ""
