"""All queues of a process come by one channel, on a real RabbitMQ: what it holds, gives back, and gets over."""

import asyncio
import inspect
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version

import dramatiq
import pika
import pytest
from dramatiq.brokers.stub import StubBroker
from dramatiq.worker import WorkerThread
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.waiting import wait_until
from windlass.services.actors.worker.desk import Desk, Line, Rung
from windlass.services.actors.worker.dramatiq_worker import DeskWorker
from windlass.shared.broker import doorbell
from windlass.shared.settings import Settings

QUEUES = [f"probe.p{number}" for number in range(6)]


def test_dramatiq_still_has_what_is_used_of_it() -> None:
    """Private names: whoever takes another version reads `worker/dramatiq_worker.py` and `shared/broker.py` again."""
    assert version("dramatiq").startswith("2.2."), "another Dramatiq"
    assert list(inspect.signature(dramatiq.Worker._add_consumer).parameters) == ["self", "queue_name", "delay"]
    assert "after_declare_queue" in inspect.getsource(dramatiq.worker._WorkerMiddleware)
    process = inspect.getsource(WorkerThread.process_message)
    assert "self.consumers[message.queue_name].post_process_message" in process
    assert "self.work_queue.task_done()" in process
    run = inspect.getsource(WorkerThread.run)
    assert "item = self.work_queue.get(timeout=self.timeout)" in run
    assert "self.process_message(item.message)" in run
    assert "except Empty:" in run
    assert "iter_queue(self.work_queue)" in inspect.getsource(dramatiq.Worker.stop)
    used = {"start", "stop", "join", "close", "requeue_messages"}
    assert used <= set(dir(Desk))
    assert set(inspect.signature(dramatiq.worker._WorkQueueItem).parameters) >= {"priority", "message"}


@pytest.fixture
def channel(amqp_url: str) -> Iterator[BlockingChannel]:
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    yield connection.channel()
    connection.close()


@pytest.fixture(params=["classic", "quorum"])
def settings(request: pytest.FixtureRequest, amqp_url: str) -> Settings:
    return Settings(amqp_url=amqp_url, queue_type=request.param)


@pytest.fixture
def classic(amqp_url: str) -> Settings:
    return Settings(amqp_url=amqp_url)


class Heard:
    """A desk on a loop of its own, and what it has heard; acked at once if it should be."""

    def __init__(self, settings: Settings, loop: asyncio.AbstractEventLoop, *, acks: bool = False) -> None:
        self.doorbells: list[Rung] = []
        self.connected = 0
        self._acks = acks
        self._loop = loop
        self.desk = Desk(
            settings,
            QUEUES,
            begin=lambda work: asyncio.run_coroutine_threadsafe(work, loop),
            on_doorbell=self._hear,
            on_connected=self._connect,
        )

    def _hear(self, doorbell: Rung) -> None:
        self.doorbells.append(doorbell)
        if self._acks:
            doorbell.ack()

    def _connect(self) -> None:
        self.connected += 1

    @property
    def line(self) -> Line:
        assert self.desk.line is not None
        return self.desk.line

    @property
    def said(self) -> set[tuple[str, int]]:
        return {(each.queue, each.starts) for each in self.doorbells}

    def on_the_loop(self, what: Callable[[], None]) -> None:
        done = threading.Event()

        def do() -> None:
            what()
            done.set()

        self._loop.call_soon_threadsafe(do)
        assert done.wait(60)

    def ack_all(self, *, times: int = 1) -> None:
        for each in self.doorbells * times:
            self.on_the_loop(each.ack)


@contextmanager
def a_desk(settings: Settings, *, acks: bool = False, start: bool = True) -> Iterator[Heard]:
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    heard = Heard(settings, loop, acks=acks)
    if start:
        heard.desk.start()
    try:
        yield heard
    finally:
        heard.desk.stop()
        heard.desk.join(60)
        line = heard.desk.line
        wait_until("its connection is closed", lambda: line is None or line.lost.done())
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def ring(channel: BlockingChannel, queue: str, starts: int = 1) -> tuple[str, int]:
    channel.basic_publish("", queue, doorbell(queue, starts))
    return queue, starts


def waiting(channel: BlockingChannel) -> int:
    return sum(channel.queue_declare(queue, passive=True).method.message_count for queue in QUEUES)


def consumers(channel: BlockingChannel, queue: str) -> int:
    probe = channel.connection.channel()
    with suppress(pika.exceptions.ChannelClosedByBroker):
        found = int(probe.queue_declare(queue, passive=True).method.consumer_count)
        probe.close()
        return found
    return 0


def until_served(channel: BlockingChannel, by: int = 1) -> None:
    wait_until("all are consumed", lambda: all(consumers(channel, queue) == by for queue in QUEUES))


def test_one_doorbell_of_each_queue_is_taken_and_the_rest_left_to_others(
    settings: Settings, channel: BlockingChannel
) -> None:
    with a_desk(settings) as heard:
        until_served(channel)
        rung = {ring(channel, queue, starts) for queue in QUEUES for starts in (1, 2)}
        wait_until("one of each came", lambda: {each.queue for each in heard.doorbells} == set(QUEUES))
        wait_until("the rest is in its queues", lambda: waiting(channel) == len(QUEUES))
        assert len(heard.doorbells) == len(QUEUES), "one of each is enough"
        heard.ack_all(times=2)  # is as good as once
        wait_until("the others came", lambda: heard.said == rung)
        heard.ack_all()
        assert not heard.line.unacked
        assert heard.connected == 1
    assert waiting(channel) == 0


def test_what_is_put_back_comes_to_somebody_else_and_says_so(settings: Settings, channel: BlockingChannel) -> None:
    with a_desk(settings) as busy:
        until_served(channel)
        ring(channel, QUEUES[3])
        wait_until("it came", lambda: busy.doorbells)
        with a_desk(settings, acks=True) as other:
            until_served(channel, by=2)
            busy.on_the_loop(busy.doorbells[0].put_back)
            wait_until("the other has it", lambda: other.doorbells)
            assert (other.doorbells[0].queue, other.doorbells[0].was_elsewhere) == (QUEUES[3], True)
            assert len(busy.doorbells) == 1
            until_served(channel, by=2)  # it comes back to that queue
    assert waiting(channel) == 0


def test_a_queue_that_is_refused_or_deleted_does_not_touch_the_others(
    classic: Settings, channel: BlockingChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.services.actors.worker.desk.AGAIN_SECONDS", 0.1)
    for queue in QUEUES:
        channel.queue_delete(queue)
    channel.queue_declare(QUEUES[0], durable=True, arguments={"x-queue-type": "quorum"})
    with a_desk(classic, acks=True) as heard:
        wait_until("the others are consumed", lambda: all(consumers(channel, queue) for queue in QUEUES[1:]))
        by = heard.line.channel
        rung = ring(channel, QUEUES[1])
        wait_until("it came", lambda: heard.said == {rung})

        channel.queue_delete(QUEUES[0])
        channel.queue_delete(QUEUES[2])
        until_served(channel)
        again = {ring(channel, queue, 5) for queue in (QUEUES[0], QUEUES[2])}
        wait_until("both came", lambda: heard.said == {rung, *again})
        assert heard.line.channel is by
        assert heard.connected == 1
    assert waiting(channel) == 0


def test_one_desk_stands_for_every_queue_of_dramatiqs_worker_and_comes_back(
    classic: Settings, channel: BlockingChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.services.actors.worker.desk.AGAIN_SECONDS", 0.1)
    broker = StubBroker(middleware=[])
    for queue in QUEUES:
        broker.declare_queue(queue)
    with a_desk(classic, acks=True, start=False) as heard:
        worker = DeskWorker(broker, desk=heard.desk, queues=set(QUEUES), worker_threads=2)
        worker.start()
        assert set(worker.consumers) >= set(QUEUES)
        assert {id(each) for each in worker.consumers.values()} == {id(heard.desk)}
        until_served(channel)
        for queue in QUEUES:
            ring(channel, queue, 7)
        wait_until("all are heard", lambda: heard.said == {(queue, 7) for queue in QUEUES})

        lost = heard.line
        heard.on_the_loop(lambda: lost.connection._transport._sock.shutdown(socket.SHUT_RDWR))  # type: ignore[attr-defined]
        wait_until("another connection", lambda: heard.connected == 2)
        heard.on_the_loop(heard.doorbells[0].ack)  # by the line it came by, which is gone
        heard.doorbells.clear()
        until_served(channel)
        channel.basic_publish("", QUEUES[0], doorbell(QUEUES[0], 1).replace(b"[1]", b'["many"]'))
        for queue in QUEUES:
            ring(channel, queue)
        wait_until("all are heard", lambda: {each.queue for each in heard.doorbells} == set(QUEUES))
        wait_until("all are acked", lambda: not heard.line.unacked)
        worker.stop(timeout=60_000)
        assert not any(thread.is_alive() for thread in worker.workers)
        assert not heard.desk.is_alive()
    assert waiting(channel) == 0
