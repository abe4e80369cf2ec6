"""A dispatcher wakes workers for what may start, and again should nobody come."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.engine.dispatching import start_next
from tests.support.engine.flow import serve
from tests.support.engine.store import Engine, a_submission, on_the_engine, until
from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.dispatch import Reminders, Seen, dispatch_due
from windlass.services.dispatcher.main import Dispatcher
from windlass.services.dispatcher.publisher import Publisher
from windlass.shared.broker import queue_arguments
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.operating import workers


@asynccontextmanager
async def a_publisher(settings: Settings) -> AsyncIterator[Publisher]:
    publisher = Publisher(settings)
    connecting = asyncio.create_task(publisher.keep_connected())
    try:
        await asyncio.wait_for(publisher.takes_messages.wait(), 60)
        yield publisher
    finally:
        connecting.cancel()
        await asyncio.wait([connecting])


@asynccontextmanager
async def a_dispatcher(engine: Engine, amqp_url: str) -> AsyncIterator[Dispatcher]:
    """It looks when it is called, and hardly ever by itself."""
    settings = Settings(amqp_url=amqp_url, database_url=engine.database_url, safety_poll_seconds=600)
    dispatcher = Dispatcher(settings, engine.pool)
    dispatching = asyncio.create_task(dispatcher.run())
    try:
        yield dispatcher
    finally:
        dispatching.cancel()
        await asyncio.wait([dispatching])


class Round:
    """A dispatcher's looks on a real RabbitMQ, and the doorbells that lie in its queues."""

    def __init__(self, engine: Engine, publisher: Publisher, settings: Settings, channel: BlockingChannel) -> None:
        self.engine, self.publisher, self.settings, self.channel = engine, publisher, settings, channel
        self.reminders = Reminders()

    async def dispatch(self, only: set[str] | None = None) -> Seen:
        backlog = RetryBacklog(self.settings.lanes)
        seconds = self.settings.lease_seconds
        return await dispatch_due(
            self.engine.pool, self.publisher, backlog, self.reminders, heard_within_seconds=seconds, only=only
        )

    def rung(self, queue: str = "probe.probe") -> list[int]:
        """The starts of each doorbell since the last time."""
        found = []
        while (answer := self.channel.basic_get(queue, auto_ack=True))[2] is not None:
            assert answer[1].expiration == "10000"
            found.append(json.loads(answer[2])["args"][0])
        return found


@asynccontextmanager
async def rounds(engine: Engine, amqp_url: str) -> AsyncIterator[Round]:
    settings = Settings(amqp_url=amqp_url)
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    try:
        channel = connection.channel()
        for queue in ("probe.probe", "probe.one", "probe.two"):
            channel.queue_declare(queue, durable=True, arguments=queue_arguments(settings))
        async with a_publisher(settings) as publisher:
            yield Round(engine, publisher, settings, channel)
    finally:
        connection.close()


@on_the_engine
async def test_each_idle_worker_is_woken_for_its_part_and_a_full_one_remembers(engine: Engine, amqp_url: str) -> None:
    for number in range(3):
        await workers.register(
            engine.pool, f"worker-{number}", hostname="h", pid=1, queues=["probe.probe"], capacity=20
        )
    async with rounds(engine, amqp_url) as round_:
        assert not (await round_.dispatch()).waiting
        await engine.submit_many(5)
        assert (await round_.dispatch()).waiting == {"probe"}
        assert round_.rung() == [2, 2, 2]
        await engine.sql("UPDATE tasks SET status = 'cancelled', completed_at = now()")
        assert not (await round_.dispatch()).waiting
        assert round_.rung() == []


@on_the_engine
async def test_where_every_slot_is_taken_one_doorbell_is_out_all_the_same(engine: Engine, amqp_url: str) -> None:
    """A worker that hears it asks when an attempt of its own has ended."""
    await serve(engine, capacity=1)
    await engine.provide("probe", limit=1)
    await engine.running()
    await engine.submit_many(100)
    async with rounds(engine, amqp_url) as round_:
        seen = await round_.dispatch()
        assert (round_.rung(), seen.anybody_idle) == ([1], False)
        round_.reminders._at["probe.probe"] += 600  # a moment ago, however slow the machine is
        await engine.submit()
        await round_.dispatch()
        assert round_.rung() == [], "and one is enough for a while"
        await engine.provide("probe", limit=3)
        await round_.dispatch()
        assert round_.rung() == [2], "whoever may start is rung for at once"


@on_the_engine
async def test_on_trial_one_start_is_rung_for_and_none_while_somebody_tries_or_while_paused(
    engine: Engine, amqp_url: str
) -> None:
    await serve(engine)
    await engine.submit_many(5)
    async with rounds(engine, amqp_url) as round_:
        await engine.sql("UPDATE providers SET paused_until = now() - interval '1 s'")
        await round_.dispatch()
        assert round_.rung() == [1]
        await start_next(engine)
        await round_.dispatch()
        assert round_.rung() == []
        await engine.sql("UPDATE providers SET paused_until = now() + interval '1 h', trial_token = NULL")
        await round_.dispatch()
        assert round_.rung() == []


@on_the_engine
async def test_a_look_at_those_who_were_named_rings_for_nobody_else(engine: Engine, amqp_url: str) -> None:
    for name in ("one", "two"):
        await engine.provide(name, limit=None)
        await engine.submit(provider=name)
    async with rounds(engine, amqp_url) as round_:
        await round_.dispatch(only={"two"})
        assert (round_.rung("probe.one"), round_.rung("probe.two")) == ([], [1])


@on_the_engine
async def test_calls_for_one_provider_do_not_put_off_what_becomes_due_at_another(engine: Engine, amqp_url: str) -> None:
    await engine.provide("busy", limit=0)
    await engine.submit(delay_seconds=0.5)
    async with rounds(engine, amqp_url) as round_, a_dispatcher(engine, amqp_url):

        async def is_rung_for() -> bool:
            await engine.submit(provider="busy")
            return round_.rung() != []

        await until(is_rung_for, seconds=60)


@on_the_engine
async def test_what_nobody_claims_is_rung_for_again(engine: Engine, amqp_url: str) -> None:
    async with rounds(engine, amqp_url) as round_, a_dispatcher(engine, amqp_url):
        await engine.submit()
        rung = 0

        async def is_rung_for_again() -> bool:
            nonlocal rung
            rung += len(round_.rung())
            return rung >= 3

        await until(is_rung_for_again, seconds=60)


@on_the_engine
async def test_names_gather_until_the_next_look_and_no_name_is_for_all(engine: Engine, amqp_url: str) -> None:
    async with rounds(engine, amqp_url) as round_:
        dispatcher = Dispatcher(round_.settings, engine.pool)
        dispatcher.publisher = round_.publisher
        for name in ("one", "two"):
            await engine.provide(name, limit=None)
            await engine.submit(provider=name)
        await dispatcher._look()
        assert (round_.rung("probe.one"), round_.rung("probe.two")) == ([1], [1]), "the first look is at all of them"
        dispatcher.hear("two")
        await dispatcher._look()
        assert (round_.rung("probe.one"), round_.rung("probe.two")) == ([], [1])
        for payload in ("two", "", "two\none"):
            dispatcher.hear(payload)
        await dispatcher._look()
        assert (round_.rung("probe.one"), round_.rung("probe.two")) == ([1], [1])


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
