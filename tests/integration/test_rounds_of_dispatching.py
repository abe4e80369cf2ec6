"""A dispatcher rings for what may start, as far as it has not been rung for already, and again should nobody come."""

import asyncio
import json
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pika
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.engine.dispatching import start_next
from tests.support.engine.flow import serve
from tests.support.engine.store import Engine, a_submission, on_the_engine, until
from windlass.services.dispatcher.backlog import RetryBacklog
from windlass.services.dispatcher.credit import CreditOut
from windlass.services.dispatcher.dispatch import Seen, dispatch_due
from windlass.services.dispatcher.foresight import Foresight
from windlass.services.dispatcher.main import Dispatcher
from windlass.services.dispatcher.publisher import Publisher
from windlass.shared.broker import queue_arguments
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.operating import workers

A_LONG_TIME = 600


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
    """A dispatcher's rounds on a real RabbitMQ, and the credit that lies in its queues."""

    def __init__(self, engine: Engine, publisher: Publisher, settings: Settings, channel: BlockingChannel) -> None:
        self.engine, self.publisher, self.settings, self.channel = engine, publisher, settings, channel
        self.credit = CreditOut()
        self.foresight = Foresight()

    async def dispatch(self, **options: Any) -> Seen:
        backlog = RetryBacklog(self.settings.lanes)
        return await dispatch_due(
            self.engine.pool,
            self.publisher,
            backlog,
            self.credit,
            self.settings,
            foresight=self.foresight,
            **options,
        )

    def let_pass(self, seconds: float) -> None:
        """All that was rung for was so much earlier."""
        for queue, rung in self.credit._rung.items():
            self.credit._rung[queue] = deque((at - seconds, number) for at, number in rung)

    def a_moment_ago(self) -> None:
        """All that was rung for is believed to be on its way, however long the machine takes from here."""
        self.let_pass(-A_LONG_TIME)

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
async def test_what_is_due_is_rung_for_once_and_again_when_it_was_used_or_nobody_came(
    engine: Engine, amqp_url: str
) -> None:
    await serve(engine, capacity=1000)
    await engine.submit_many(70)
    async with rounds(engine, amqp_url) as round_:
        assert (await round_.dispatch()).waiting == {"probe"}
        assert sum(round_.rung()) == 70
        round_.a_moment_ago()
        await round_.dispatch()
        assert round_.rung() == [], "it has just been rung for"
        round_.credit.used("probe.probe", 10)
        await round_.dispatch()
        assert round_.rung() == [10]
        round_.let_pass(A_LONG_TIME + 3)
        await round_.dispatch()
        assert sum(round_.rung()) == 70, "nobody came"
        await engine.sql("UPDATE tasks SET status = 'cancelled', completed_at = now()")
        round_.credit._rung.clear()
        assert not (await round_.dispatch()).waiting
        assert round_.rung() == []


@on_the_engine
async def test_one_doorbell_stands_for_64_at_most_where_nobody_has_more_places_and_everybody_who_is_idle_gets_one(
    engine: Engine, amqp_url: str
) -> None:
    for number in range(3):
        await workers.register(
            engine.pool, f"worker-{number}", hostname="h", pid=1, queues=["probe.probe"], capacity=20
        )
    async with rounds(engine, amqp_url) as round_:
        await engine.submit_many(5)
        await round_.dispatch()
        assert sorted(round_.rung()) == [1, 2, 2]
        await engine.submit_many(395)
        round_.credit._rung.clear()
        await round_.dispatch()
        bells = round_.rung()
        assert (sum(bells), max(bells) <= 64) == (400, True)


@on_the_engine
async def test_where_every_slot_is_taken_one_doorbell_is_out_all_the_same(engine: Engine, amqp_url: str) -> None:
    """Whoever hears it asks when an attempt of its own has ended."""
    await serve(engine, capacity=1)
    await engine.provide("probe", limit=1)
    await engine.running()
    await engine.submit_many(100)
    async with rounds(engine, amqp_url) as round_:
        seen = await round_.dispatch()
        assert (round_.rung(), seen.anybody_idle) == ([64], False)


@on_the_engine
async def test_a_limit_that_is_raised_is_rung_for_at_once(engine: Engine, amqp_url: str) -> None:
    await engine.provide("probe", limit=0)
    await serve(engine, capacity=1000)
    await engine.submit_many(3)
    async with rounds(engine, amqp_url) as round_:
        await round_.dispatch()
        assert round_.rung() == [3], "whoever asks is told that more is due, and given nothing"
        round_.a_moment_ago()
        await round_.dispatch()
        assert round_.rung() == []
        await engine.provide("probe", limit=1)
        await round_.dispatch()
        assert round_.rung() == [3]


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
        round_.credit._rung.clear()
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
    async with a_dispatcher(engine, amqp_url) as dispatcher:

        async def is_rung_for() -> bool:
            await engine.submit(provider="busy")
            return dispatcher.credit.get("probe.probe", 0) == 1

        await until(is_rung_for, seconds=60)


async def until_foreseen(engine: Engine, dispatcher: Dispatcher) -> None:
    async def foresees() -> bool:
        await engine.sql(f"SELECT {named('wake_dispatcher')}('{{probe}}')")
        return dispatcher.foresight._queues.get("probe") == ["probe.probe"]

    await until(foresees, seconds=60)


@on_the_engine
async def test_one_that_was_foreseen_is_rung_for_before_anybody_looks(engine: Engine, amqp_url: str) -> None:
    await serve(engine, capacity=10)
    async with rounds(engine, amqp_url) as round_, a_dispatcher(engine, amqp_url) as dispatcher:
        await until_foreseen(engine, dispatcher)
        async with engine.pool.acquire() as other, other.transaction():
            await other.execute("LOCK TABLE workers IN ACCESS EXCLUSIVE MODE")  # whoever looks has to wait
            await engine.submit()

            async def is_rung_for() -> bool:
                return round_.rung() == [1]

            await until(is_rung_for, seconds=60)


@on_the_engine
async def test_one_that_was_foreseen_is_looked_at_if_nobody_has_looked_when_it_should_have_started(
    engine: Engine, amqp_url: str
) -> None:
    async with rounds(engine, amqp_url) as round_:
        dispatcher = Dispatcher(round_.settings, engine.pool)
        dispatcher.publisher = round_.publisher
        dispatcher.calls.take()

        async def called_for(*, is_looked_at: bool) -> set[str] | None:
            dispatcher.foresight._queues["probe"] = ["probe.probe"]
            async with asyncio.TaskGroup() as tasks:
                dispatcher._hear_of_one("probe.probe", tasks)
                assert not dispatcher.foresight.has_seen("probe")
                if is_looked_at:
                    dispatcher.foresight._queues["probe"] = []
            return dispatcher.calls.take()

        assert await called_for(is_looked_at=False) == {"probe"}
        assert await called_for(is_looked_at=True) == set()
        assert round_.rung() == [1, 1]


@on_the_engine
async def test_only_one_that_is_due_at_once_is_announced(engine: Engine) -> None:
    await engine.provide("one", limit=None)
    async with engine.listening("windlass_due") as heard:
        first = await engine.submit(provider="one")
        await engine.submit(provider="one", delay_seconds=60)
        await engine.submit(provider="one", depends_on=[first])
        await engine.submit_many(2)
    assert heard == ["probe.one"]


@on_the_engine
async def test_what_is_used_while_a_look_is_under_way_is_not_rung_for_twice(engine: Engine, amqp_url: str) -> None:
    """Nor does what was rung for nothing keep the next one waiting."""
    await serve(engine, capacity=10)
    task_id = await engine.submit()
    async with rounds(engine, amqp_url) as round_:
        await round_.dispatch()
        assert round_.rung() == [1]
        round_.a_moment_ago()
        with round_.credit.kept():
            round_.credit.used("probe.probe", 1)  # as a worker says it whose claim the look has not seen
            assert round_.credit["probe.probe"] == 1
        assert round_.credit["probe.probe"] == 0
        round_.credit.rung("probe.probe", 1)
        round_.a_moment_ago()
        await engine.start(task_id)
        await round_.dispatch(only={"probe"})
        await engine.submit()
        await round_.dispatch(only={"probe"})
        assert round_.rung() == [1]


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
