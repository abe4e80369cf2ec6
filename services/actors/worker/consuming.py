"""Dramatiq's worker with one connection and one channel for all queues of the process.

Dramatiq has a thread with a connection for each queue, and lets each of them prefetch as if the others were not there.
"""

import logging
import time
from collections import deque
from collections.abc import Generator, Iterable
from typing import Any

import dramatiq
import pika
from dramatiq.errors import ConnectionClosed
from dramatiq.worker import ConsumerThread

from windlass.shared.broker import DoorbellBroker, OwnedConsumer
from windlass.shared.settings import Settings

log = logging.getLogger("actors")

ALL_QUEUES = "all queues"
"""What the one consumer is called in the logs; no queue has a space in its name."""

AGAIN_SECONDS = 3.0
"""Until a queue that could not be had, or was deleted, is tried again."""

HIDDEN_SECONDS = 1.0
"""So long may a doorbell lie in a process in which no place becomes free; then another one may have it."""

NOT_IMPLEMENTED = 540
"""RabbitMQ's answer to a channel's prefetch where it cannot have one."""

Delivery = tuple[Any, Any, Any]


class OneChannelConsumer(OwnedConsumer):
    """Consumes all the queues by one channel, and never has more under way than there are places.

    RabbitMQ sees to that on classic queues: the whole channel has one prefetch. Quorum queues know none but each
    consumer's own, and a later RabbitMQ may know no other. What comes by them beyond the places is kept here for a
    moment, then put back, and its queue is left to others until a place is free.
    """

    def __init__(self, broker: "OneChannelBroker", queues: Iterable[str], places: int, timeout: int) -> None:
        super().__init__(broker, ALL_QUEUES, places, timeout)
        self.iterator = self._deliveries(timeout / 1000)
        self._places = places
        self._arrived: deque[tuple[float, Delivery]] = deque()
        self._freed_at = 0.0
        self._unattended = dict.fromkeys(queues, 0.0)
        self._is_left_to_others: set[str] = set()
        try:
            if broker.has_shared_prefetch:
                self.channel.basic_qos(prefetch_count=places, global_qos=True)
            self.channel.add_on_cancel_callback(self._cancelled)
            self._attend()
        except (pika.exceptions.AMQPConnectionError, pika.exceptions.AMQPChannelError) as error:
            if getattr(error, "reply_code", None) == NOT_IMPLEMENTED:
                broker.has_shared_prefetch = False  # the next connection does without
            if self.connection.is_open:
                self.connection.close()
            raise ConnectionClosed(error) from None  # type: ignore[no-untyped-call]

    @property
    def _has_room(self) -> bool:
        return len(self.known_tags) < self._places

    def _deliveries(self, seconds: float) -> Generator[Delivery, None, None]:
        """What Dramatiq's consumer takes its messages from; three times nothing lets its thread look after itself."""
        while True:
            self._listen_again()
            while self._arrived and self._has_room:
                yield self._arrived.popleft()[1]
            self.connection.process_data_events(time_limit=seconds)
            if not self.channel.is_open:
                raise self.channel._closing_reason  # type: ignore[attr-defined] # noqa: SLF001 - pika tells it nowhere else
            self._put_back_what_waits()
            if not (self._arrived and self._has_room):
                yield None, None, None

    def _ack_done(self) -> None:
        super()._ack_done()
        self._freed_at = time.monotonic()

    def _take(self, _channel: Any, method: Any, properties: Any, body: bytes) -> None:
        self._arrived.append((time.monotonic(), (method, properties, body)))

    def _listen_again(self) -> None:
        if self._is_left_to_others and self._has_room:
            self._unattended.update(dict.fromkeys(self._is_left_to_others, 0.0))
            self._is_left_to_others.clear()
        if self._unattended:
            self._attend()

    def _put_back_what_waits(self) -> None:
        """Not while places become free again and again: then all of them soon have one."""
        if self._has_room or not self._arrived:
            return
        if max(self._arrived[0][0], self._freed_at) > time.monotonic() - HIDDEN_SECONDS:
            return
        waiting, self._arrived = self._arrived, deque()
        for queue in {method.consumer_tag for _, (method, _, _) in waiting}:
            self.channel.basic_cancel(queue)
            self._is_left_to_others.add(queue)
        for _, (method, _, _) in waiting:
            self.channel.basic_nack(method.delivery_tag, requeue=True)

    def _cancelled(self, frame: Any) -> None:
        """RabbitMQ has nothing more from there: the queue was deleted, or its node is gone."""
        self._unattended[frame.method.consumer_tag] = time.monotonic() + AGAIN_SECONDS

    def _attend(self) -> None:
        """Declares and consumes the queues whose time has come. One that RabbitMQ refuses would take the channel with
        it, and with that all the others: it is declared by another."""
        now = time.monotonic()
        declaring = None
        for queue in [queue for queue, again_at in self._unattended.items() if again_at <= now]:
            declaring = declaring or self.connection.channel()
            try:
                declaring.queue_declare(queue, durable=True, arguments=self.broker.queue_arguments)
            except pika.exceptions.ChannelClosedByBroker as error:
                log.warning("queue %s is not served: RabbitMQ refuses it (%s)", queue, error.reply_text)
                self._unattended[queue] = now + 10 * AGAIN_SECONDS
                declaring = None
                continue
            self.channel.basic_consume(queue, self._take, consumer_tag=queue)
            del self._unattended[queue]
        if declaring is not None:
            declaring.close()


class OneChannelBroker(DoorbellBroker):
    """Whatever queue somebody wants to consume: it comes with all of them."""

    def __init__(self, settings: Settings, *, middleware: list[dramatiq.Middleware]) -> None:
        super().__init__(settings, middleware=middleware)
        self.has_shared_prefetch = settings.queue_type == "classic"

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> OneChannelConsumer:
        consumer = OneChannelConsumer(self, sorted(self.queues), prefetch, timeout)
        logging.getLogger("rabbitmq").info("connected", extra={"connection": queue_name})
        return consumer


class OneChannelWorker(dramatiq.Worker):
    """One consumer thread stands for every queue: a worker thread acks by the one that it finds under the queue's name,
    and dies without it."""

    def start(self) -> None:
        super().start()
        for thread in set(self.consumers.values()):
            thread.start()

    def _add_consumer(self, queue_name: str, *, delay: bool = False) -> None:  # noqa: ARG002 - delays are rows
        self.consumers[queue_name] = next(iter(self.consumers.values()), None) or ConsumerThread(
            broker=self.broker,
            queue_name=ALL_QUEUES,
            prefetch=self.queue_prefetch,
            work_queue=self.work_queue,
            worker_timeout=self.worker_timeout,
        )
