"""A dispatcher goes on until everything is rung for that may start, also when that is more than one look counts."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.engine.flow import serve
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.dispatch import dispatch_due
from windlass.services.dispatcher.publisher import Publisher
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control.providers import DUE_COUNTED


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
        assert await dispatch_due(engine.pool, publisher, RetryBacklog(), settings), "there is more to do"
        assert await engine.count("doorbell_count = 1") == DUE_COUNTED
        assert not await dispatch_due(engine.pool, publisher, RetryBacklog(), settings)
        assert await engine.count("doorbell_count = 1") == DUE_COUNTED + 1
