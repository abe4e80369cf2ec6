"""RabbitMQ as the doorbell: the queues, what a message says, and a Dramatiq broker whose acks cannot hit the wrong one.

Dramatiq's delay queues (`.DQ`) and dead letter queues (`.XQ`) are never declared: delays and dead letters are rows.
"""

import logging
import secrets
import time
from typing import Any

import dramatiq
import msgspec
import pika
from dramatiq.broker import Consumer
from dramatiq.brokers.rabbitmq import RabbitmqBroker, _RabbitmqConsumer
from dramatiq.message import Message

from windlass.shared.settings import Settings

log = logging.getLogger("rabbitmq")

DOORBELL_EXPIRES_MS = "10000"
"""A doorbell that nobody has taken by then is worth nothing: it has been rung again, or there is nothing to ring for.
So what lies in a queue is bounded, and nobody has to count it."""

HEARTBEAT_SECONDS = 15
"""A frozen consumer keeps what it prefetched until this many seconds of silence."""


def connection_parameters(settings: Settings) -> pika.URLParameters:
    assert settings.amqp_url is not None, "each process that uses RabbitMQ checks this at its start"
    parameters = pika.URLParameters(settings.amqp_url)
    parameters.heartbeat = HEARTBEAT_SECONDS
    parameters.blocked_connection_timeout = HEARTBEAT_SECONDS
    parameters.socket_timeout = 5
    return parameters


def queue_arguments(settings: Settings) -> dict[str, Any]:
    """Dispatcher and workers must declare a queue alike, or RabbitMQ refuses the second one."""
    return {"x-queue-type": settings.queue_type}


def doorbell(queue: str, starts: int) -> bytes:
    """The message that says: this queue has work, ask for so many of its tasks first. As Dramatiq would encode it, but
    more cheaply."""
    return msgspec.json.encode(
        {
            "queue_name": queue,
            "actor_name": queue.partition(".")[0],
            "args": (starts,),
            "kwargs": {},
            "options": {},
            "message_id": secrets.token_hex(8),
            "message_timestamp": time.time_ns() // 1_000_000,
        }
    )


def starts_of(doorbell: bytes) -> int:
    """How many to ask for first. Raises ValueError for what is no doorbell."""
    try:
        return msgspec.json.decode(doorbell, type=_Doorbell).args[0]
    except (msgspec.MsgspecError, IndexError) as error:
        raise ValueError(str(error)) from None


class _Doorbell(msgspec.Struct):
    args: tuple[int, ...]


def threads_live(worker: dramatiq.Worker) -> bool:
    """Whether none of its threads has died; one that waits for RabbitMQ to come back lives."""
    return all(thread.is_alive() for thread in {*worker.workers, *worker.consumers.values()})


class OwnedConsumer(_RabbitmqConsumer):
    """Acks only messages that were delivered on its own channel.

    After a reconnection Dramatiq acks messages of the old channel by their number on the new one, where that number
    belongs to another message that is still running.
    """

    def __next__(self) -> Any:
        message = super().__next__()  # type: ignore[no-untyped-call]
        if message is not None:
            message.consumer = self
        return message

    def ack(self, message: Any) -> None:
        if message.consumer is self:
            super().ack(message)  # type: ignore[no-untyped-call]

    def nack(self, message: Any) -> None:
        if message.consumer is self:
            super().nack(message)  # type: ignore[no-untyped-call]


class DoorbellBroker(RabbitmqBroker):
    """Dramatiq's broker without the queues that Windlass does not use."""

    def __init__(self, settings: Settings, *, middleware: list[dramatiq.Middleware]) -> None:
        super().__init__(url="amqp://unused", middleware=middleware, confirm_delivery=True)
        self.parameters = [connection_parameters(settings)]
        self.queue_arguments = queue_arguments(settings)

    @property
    def consumer_class(self) -> type[OwnedConsumer]:
        return OwnedConsumer

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> Consumer:
        consumer = super().consume(queue_name, prefetch, timeout)
        del self.connection  # it served to declare the queue; idle, it would miss its heartbeats
        log.info("connected", extra={"connection": queue_name})
        return consumer

    def enqueue(self, message: Message[Any], *, delay: int | None = None) -> Message[Any]:
        """Only periodiq publishes this way, once a minute: a connection kept that long would be dead by then."""
        try:
            return super().enqueue(message, delay=delay)
        finally:
            del self.connection

    def declare_queue(self, queue_name: str, *, ensure: bool = False) -> None:
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.queues_pending.add(queue_name)
            self.emit_after("declare_queue", queue_name)
        if ensure:
            self._ensure_queue(queue_name)  # type: ignore[no-untyped-call]

    def _build_queue_arguments(self, _queue_name: str) -> dict[str, Any]:
        return self.queue_arguments

    def _declare_dq_queue(self, queue_name: str) -> None:
        """Delays are rows."""

    def _declare_xq_queue(self, queue_name: str) -> None:
        """Dead letters are rows."""
