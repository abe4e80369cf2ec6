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


def test_an_unreadable_message_is_dropped(broker: DoorbellBroker, channel: BlockingChannel) -> None:
    for body in (b"not a doorbell", doorbell(QUEUE, 1)):
        channel.basic_publish("", QUEUE, body)
    consumer = broker.consume(QUEUE, prefetch=1, timeout=200)
    consumer.ack(take(consumer))
    consumer.close()
    assert channel.queue_declare(QUEUE, passive=True).method.message_count == 0


def test_a_nack_drops_the_message(broker: DoorbellBroker, channel: BlockingChannel) -> None:
    channel.basic_publish("", QUEUE, doorbell(QUEUE, 1))
    consumer = broker.consume(QUEUE, prefetch=1, timeout=200)
    consumer.nack(take(consumer))
    consumer.close()
    assert channel.queue_declare(QUEUE, passive=True).method.message_count == 0


def test_delays_and_dead_letters_have_no_queues(
    broker: DoorbellBroker, amqp_url: str, management: httpx.Client
) -> None:
    broker.consume(QUEUE, prefetch=1, timeout=200).close()
    virtual_host = amqp_url.rpartition("/")[2]
    queues = management.get(f"/api/queues/{virtual_host}").raise_for_status().json()
    assert [queue["name"] for queue in queues] == [QUEUE]
    assert queues[0]["durable"]
