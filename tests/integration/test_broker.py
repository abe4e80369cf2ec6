"""The broker on a real RabbitMQ: what it declares, and what its acks can hit."""

from collections.abc import Iterator
from typing import Any

import dramatiq
import httpx
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.support.waiting import wait_until
from windlass.shared.broker import DoorbellBroker, doorbell, queue_arguments
from windlass.shared.settings import Settings

QUEUE = "probe.probe"


@pytest.fixture
def broker(amqp_url: str) -> Iterator[DoorbellBroker]:
    broker = DoorbellBroker(Settings(amqp_url=amqp_url), middleware=[])
    dramatiq.actor(actor_name="probe", queue_name=QUEUE, broker=broker)(lambda _task_id: None)
    yield broker
    broker.close()


@pytest.fixture
def channel(amqp_url: str) -> Iterator[BlockingChannel]:
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    channel = connection.channel()
    channel.queue_declare(QUEUE, durable=True, arguments=queue_arguments(Settings()))
    yield channel
    connection.close()


def take(consumer: Any) -> Any:
    return wait_until("a message", lambda: next(consumer))


def test_an_ack_of_an_old_channel_s_message_does_not_hit_the_new_channel_s(
    broker: DoorbellBroker, channel: BlockingChannel
) -> None:
    """After a reconnection both messages have number 1; only the new one may be acked by it."""
    channel.basic_publish("", QUEUE, doorbell(QUEUE, 1))
    old_consumer = broker.consume(QUEUE, prefetch=1, timeout=200)
    old = take(old_consumer)
    old_consumer.close()
    new_consumer = broker.consume(QUEUE, prefetch=1, timeout=200)
    new = take(new_consumer)
    assert (old._tag, new._tag) == (1, 1)

    new_consumer.ack(old)
    new_consumer.close()
    assert channel.queue_declare(QUEUE, passive=True).method.message_count == 1, "it was not acked"

    last_consumer = broker.consume(QUEUE, prefetch=1, timeout=200)
    last_consumer.ack(take(last_consumer))
    last_consumer.close()
    assert channel.queue_declare(QUEUE, passive=True).method.message_count == 0


def test_acks_that_go_together_leave_out_what_is_still_at_work(
    broker: DoorbellBroker, channel: BlockingChannel
) -> None:
    bells = [doorbell(QUEUE, number + 1) for number in range(6)]
    for bell in [*bells[:3], b"nobody can read this", *bells[3:]]:
        channel.basic_publish("", QUEUE, bell)
    consumer = broker.consume(QUEUE, prefetch=10, timeout=200)
    messages = [take(consumer) for _ in bells]
    for done in (3, 0, 5):
        consumer.ack(messages[done])
    consumer.close()
    left = [channel.basic_get(QUEUE, auto_ack=True)[2] for _ in range(3)]
    assert left == [bells[1], bells[2], bells[4]]
    assert channel.queue_declare(QUEUE, passive=True).method.message_count == 0


def test_delays_and_dead_letters_have_no_queues(
    broker: DoorbellBroker, amqp_url: str, management: httpx.Client
) -> None:
    broker.consume(QUEUE, prefetch=1, timeout=200).close()
    virtual_host = amqp_url.rpartition("/")[2]
    queues = management.get(f"/api/queues/{virtual_host}").raise_for_status().json()
    assert [queue["name"] for queue in queues] == [QUEUE]
    assert queues[0]["durable"]
