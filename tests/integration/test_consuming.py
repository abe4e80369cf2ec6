"""All queues of a process come by one channel, on a real RabbitMQ: what it holds, gives back, and gets over."""

import inspect
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.metadata import version
from typing import Any
from uuid import uuid4

import dramatiq
import pika
import pytest
from dramatiq.brokers.rabbitmq import _RabbitmqConsumer
from dramatiq.worker import ConsumerThread, WorkerThread
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.waiting import wait_until
from windlass.services.actors.worker.consuming import OneChannelBroker, OneChannelConsumer, OneChannelWorker
from windlass.shared.broker import doorbell
from windlass.shared.settings import Settings

QUEUES = [f"probe.p{number}" for number in range(6)]
PLACES = 3


def test_dramatiq_and_pika_still_have_what_is_used_of_them() -> None:
    """Private names: whoever takes another version reads `worker/consuming.py` and `shared/broker.py` again."""
    assert version("dramatiq").startswith("2.2."), "another Dramatiq"
    assert list(inspect.signature(dramatiq.Worker._add_consumer).parameters) == ["self", "queue_name", "delay"]
    assert set(inspect.signature(ConsumerThread).parameters) == {
        "broker", "queue_name", "prefetch", "work_queue", "worker_timeout",
    }  # fmt: skip
    assert "self.broker.consume(" in inspect.getsource(ConsumerThread.run)
    assert "self.consumers[message.queue_name].post_process_message" in inspect.getsource(WorkerThread.process_message)
    assert "after_declare_queue" in inspect.getsource(dramatiq.worker._WorkerMiddleware)
    next_one = inspect.getsource(_RabbitmqConsumer.__next__)
    assert "method, properties, body = next(self.iterator)" in next_one
    assert "self.known_tags.add(method.delivery_tag)" in next_one
    assert "message._tag" in inspect.getsource(_RabbitmqConsumer.ack)
    assert inspect.isgeneratorfunction(BlockingChannel.consume), "made by Dramatiq's consumer, and never begun"
    assert "_closing_reason" in inspect.getsource(BlockingChannel.__init__)


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


def a_broker(settings: Settings, run: Callable[[str], None] = lambda _task_id: None) -> OneChannelBroker:
    broker = OneChannelBroker(settings, middleware=[])
    dramatiq.actor(actor_name="probe", queue_name=QUEUES[0], broker=broker)(run)
    for queue in QUEUES:
        broker.declare_queue(queue)
    return broker


def ring(channel: BlockingChannel, queue: str) -> str:
    task_id = uuid4()
    channel.basic_publish("", queue, doorbell(task_id, actor="probe", queue=queue))
    return str(task_id)


def waiting(channel: BlockingChannel) -> int:
    return sum(channel.queue_declare(queue, passive=True).method.message_count for queue in QUEUES)


def take(consumer: Any) -> Any:
    return wait_until("a message", lambda: next(consumer))


def until_acked(consumer: OneChannelConsumer) -> None:
    """Else what has run comes again by the next connection."""
    wait_until("all are acked", lambda: not consumer.known_tags)
    sent = threading.Event()
    consumer.connection.add_callback_threadsafe(sent.set)
    assert sent.wait(20)


def test_a_process_takes_no_more_than_it_has_places_for_whatever_the_queues_have(
    settings: Settings, channel: BlockingChannel
) -> None:
    broker = a_broker(settings)
    consumer = broker.consume("any", prefetch=PLACES, timeout=300)
    rung = [ring(channel, queue) for queue in QUEUES for _ in range(2)]
    taken = [take(consumer) for _ in range(PLACES)]

    def others_can_have_the_rest() -> bool:
        assert next(consumer) is None, "it has no place left"
        assert settings.queue_type == "quorum" or not consumer._arrived, "RabbitMQ itself keeps the rest"
        return waiting(channel) == len(rung) - PLACES

    wait_until("the rest is back in its queues", others_can_have_the_rest)
    for message in taken:
        consumer.ack(message)
    later: list[Any] = []
    while len(later) < len(rung) - PLACES:
        later.append(take(consumer))
        consumer.ack(later[-1])
    assert {message.args[0] for message in (*taken, *later)} == set(rung)
    consumer.close()  # type: ignore[no-untyped-call]
    assert waiting(channel) == 0


def test_a_queue_that_is_refused_or_deleted_does_not_touch_the_others(
    classic: Settings, channel: BlockingChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("windlass.services.actors.worker.consuming.AGAIN_SECONDS", 0.1)
    channel.queue_declare(QUEUES[0], durable=True, arguments={"x-queue-type": "quorum"})
    broker = a_broker(classic)
    consumer = broker.consume("any", prefetch=PLACES, timeout=100)
    by = consumer.channel
    rung = ring(channel, QUEUES[1])
    message = take(consumer)
    assert message.args == (rung,)

    channel.queue_delete(QUEUES[0])
    channel.queue_delete(QUEUES[2])
    for queue in (QUEUES[0], QUEUES[2]):

        def is_served(queue: str = queue) -> bool:
            assert next(consumer) is None
            with suppress(pika.exceptions.ChannelClosedByBroker):
                probe = channel.connection.channel()
                return probe.queue_declare(queue, passive=True).method.consumer_count == 1
            return False

        wait_until(f"{queue} is served", is_served)
        again = ring(channel, queue)
        answer = take(consumer)
        assert answer.args == (again,)
        consumer.ack(answer)
    assert consumer.channel is by
    consumer.ack(message)
    consumer.close()  # type: ignore[no-untyped-call]
    assert waiting(channel) == 0


def test_one_thread_and_one_connection_serve_every_queue_and_come_back(
    classic: Settings, channel: BlockingChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dramatiq.worker.CONSUMER_RESTART_DELAY_SECS", 0.1)
    ran: list[str] = []
    worker = OneChannelWorker(a_broker(classic, ran.append), queues=set(QUEUES), worker_threads=2, worker_timeout=100)
    worker.queue_prefetch = 2
    worker.start()
    assert set(worker.consumers) == set(QUEUES)
    (thread,) = set(worker.consumers.values())
    wait_until("all are consumed", lambda: thread.consumer is not None)
    rung = {ring(channel, queue) for queue in QUEUES}
    wait_until("all have run", lambda: set(ran) == rung)

    lost = thread.consumer
    assert isinstance(lost, OneChannelConsumer)
    until_acked(lost)
    lost.connection._impl._transport._sock.shutdown(socket.SHUT_RDWR)  # type: ignore[attr-defined]
    wait_until("another connection", lambda: thread.consumer is not lost)
    rung |= {ring(channel, queue) for queue in QUEUES}
    wait_until("all have run", lambda: set(ran) == rung)
    assert isinstance(thread.consumer, OneChannelConsumer)
    until_acked(thread.consumer)
    worker.stop(timeout=20_000)
    assert not any(each.is_alive() for each in (*worker.workers, thread))
    assert waiting(channel) == 0
