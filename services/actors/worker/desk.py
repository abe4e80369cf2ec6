"""The desk: where doorbells come in, by one connection and one channel for all queues of the process.

It lives on the writer's loop, as those do who hear the doorbells and ack them: no thread stands in between.
"""

import asyncio
import logging
import threading
from collections.abc import Callable, Coroutine, Iterable
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.channel import Channel

from windlass.shared import broker
from windlass.shared.errors import words_of
from windlass.shared.settings import Settings

log = logging.getLogger("actors")

ALL_QUEUES = "all queues"
"""What the one connection is called in the logs; no queue has a space in its name."""

AGAIN_SECONDS = 3.0
"""Until a connection that was lost, or a queue that could not be had or was deleted, is tried again."""

LEFT_TO_OTHERS_SECONDS = 1.0
"""So long a queue is not consumed by a process that had no place for its doorbell."""

DOORBELLS_AT_ONCE = 1
"""Of each queue: the others are for other processes, or come when this one is acked."""

CLOSE_SECONDS = 1.0


class Rung:
    """A doorbell that came, with how many tasks of its queue to ask for first. It is acked or put back once, by the
    channel that it came by. When that channel is lost, RabbitMQ has the doorbell back already."""

    __slots__ = ("_line", "_tag", "queue", "starts", "was_elsewhere")

    def __init__(self, line: "Line", tag: int, queue: str, starts: int, *, was_elsewhere: bool) -> None:
        self._line = line
        self._tag = tag
        self.queue = queue
        self.starts = starts
        self.was_elsewhere = was_elsewhere

    def ack(self) -> None:
        self._line.ack(self._tag)

    def put_back(self) -> None:
        self._line.put_back(self._tag, self.queue)


class Line:
    """One connection, from its beginning to its loss."""

    def __init__(
        self,
        settings: Settings,
        queues: Iterable[str],
        on_doorbell: Callable[[Rung], None],
        on_open: Callable[[], None],
    ) -> None:
        self._queues = list(queues)
        self._on_doorbell = on_doorbell
        self._on_open = on_open
        self._arguments = broker.queue_arguments(settings)
        self._loop = asyncio.get_running_loop()
        self.lost: asyncio.Future[BaseException] = self._loop.create_future()
        self.unacked: set[int] = set()
        self.channel: Channel | None = None
        self._due: list[str] = []
        self._attending: asyncio.Task[None] | None = None
        self.connection = AsyncioConnection(
            broker.connection_parameters(settings),
            on_open_callback=lambda connection: connection.channel(on_open_callback=self._opened),
            on_open_error_callback=lambda _connection, error: self._lose(error),
            on_close_callback=lambda _connection, error: self._lose(error),
        )

    def ack(self, tag: int) -> None:
        """A number that is acked twice would cost the channel."""
        if self._is_open and tag in self.unacked:
            self.unacked.discard(tag)
            self._channel.basic_ack(tag)

    def put_back(self, tag: int, queue: str) -> None:
        """Another consumer may have it. For a moment its queue is left to the others, or RabbitMQ would give it to this
        one again."""
        if self._is_open and tag in self.unacked:
            self.unacked.discard(tag)
            if queue in self._channel.consumer_tags:
                self._channel.basic_cancel(queue, callback=lambda _frame: None)
                self._attend_in(LEFT_TO_OTHERS_SECONDS, queue)
            self._channel.basic_nack(tag, requeue=True)

    async def close(self) -> None:
        if self._attending is not None:
            self._attending.cancel()
        with suppress(pika.exceptions.AMQPError):
            if not (self.connection.is_closed or self.connection.is_closing):
                self.connection.close()
        with suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_SECONDS):
                await self.lost

    @property
    def _channel(self) -> Channel:
        assert self.channel is not None
        return self.channel

    @property
    def _is_open(self) -> bool:
        return self.channel is not None and self.channel.is_open

    def _lose(self, error: BaseException) -> None:
        if not self.lost.done():
            self.lost.set_result(error)

    def _opened(self, channel: Channel) -> None:
        self.channel = channel
        channel.add_on_close_callback(lambda _channel, error: self._lose(error))
        channel.add_on_cancel_callback(lambda frame: self._attend_in(AGAIN_SECONDS, str(frame.method.consumer_tag)))
        channel.basic_qos(prefetch_count=DOORBELLS_AT_ONCE, callback=lambda _frame: self._begin())

    def _begin(self) -> None:
        for queue in self._queues:
            self._attend(queue)
        self._on_open()

    def _attend_in(self, seconds: float, queue: str) -> None:
        self._loop.call_later(seconds, self._attend, queue)

    def _attend(self, queue: str) -> None:
        self._due.append(queue)
        if self._attending is None or self._attending.done():
            self._attending = self._loop.create_task(self._attend_to_those_due())

    async def _attend_to_those_due(self) -> None:
        """Declares and consumes them. One that RabbitMQ refuses would take the channel with it, and with that all the
        others: it is declared by another."""
        declaring: Channel | None = None
        try:
            while self._due and self._is_open:
                queue = self._due.pop(0)
                try:
                    declaring = declaring or await self._answer(
                        lambda told: self.connection.channel(on_open_callback=told), None
                    )
                    await self._declare(declaring, queue)
                    self._channel.basic_consume(queue, self._take, consumer_tag=queue)
                except pika.exceptions.ChannelClosedByBroker as error:
                    log.warning("queue %s is not served: RabbitMQ refuses it (%s)", queue, error.reply_text)
                    self._attend_in(10 * AGAIN_SECONDS, queue)
                    declaring = None
                except pika.exceptions.DuplicateConsumerTag:
                    self._attend_in(AGAIN_SECONDS, queue)  # its cancel is still under way
            if declaring is not None and declaring.is_open:
                declaring.close()
        except pika.exceptions.AMQPError as error:
            self._lose(error)

    async def _declare(self, declaring: Channel, queue: str) -> None:
        await self._answer(
            lambda told: declaring.queue_declare(queue, durable=True, arguments=self._arguments, callback=told),
            declaring,
        )

    async def _answer(self, ask: Callable[[Callable[[Any], None]], Any], by: Channel | None) -> Any:
        """What pika tells; or what has closed the channel that it was asked by, or the connection."""
        answered: asyncio.Future[Any] = self._loop.create_future()

        def told(answer: Any) -> None:
            if not answered.done():
                answered.set_result(answer)

        def closed(_channel: Channel, error: BaseException) -> None:
            if not answered.done():
                answered.set_exception(error)

        if by is not None:
            by.add_on_close_callback(closed)
        ask(told)
        await asyncio.wait({answered, self.lost}, return_when=asyncio.FIRST_COMPLETED)
        if not answered.done():
            raise pika.exceptions.AMQPConnectionError("the connection was lost")
        return answered.result()

    def _take(self, _channel: Any, method: Any, _properties: Any, body: bytes) -> None:
        queue = str(method.consumer_tag)
        self.unacked.add(method.delivery_tag)
        try:
            starts = broker.starts_of(body)
        except ValueError:
            log.warning("a message on %s is no doorbell, and is dropped", queue)
            self.ack(method.delivery_tag)
            return
        self._on_doorbell(Rung(self, method.delivery_tag, queue, starts, was_elsewhere=method.redelivered))


class Desk:
    """In Dramatiq's eyes the consumer of every queue: a worker thread looks up the one that it finds under the queue's
    name, and dies without it. No message stands for what runs, so there is nothing to say to it."""

    def __init__(
        self,
        settings: Settings,
        queues: Iterable[str],
        *,
        begin: Callable[[Coroutine[Any, Any, None]], "Future[None]"],
        on_doorbell: Callable[[Rung], None],
        on_connected: Callable[[], None],
    ) -> None:
        """`begin` runs something on the loop of those who hear the doorbells."""
        self._settings = settings
        self._queues = sorted(queues)
        self._begin = begin
        self._on_doorbell = on_doorbell
        self._on_connected = on_connected
        self._serving: Future[None] | None = None
        self._is_gone = threading.Event()
        self.line: Line | None = None

    def start(self) -> None:
        self._serving = self._begin(self._keep_connected())

    def is_alive(self) -> bool:
        """One that waits for RabbitMQ to come back lives."""
        return self._serving is None or not self._serving.done()

    def stop(self) -> None:
        if self._serving is not None:
            self._serving.cancel()

    def join(self, timeout: float | None = None) -> None:
        if self._serving is not None:
            self._is_gone.wait(timeout)

    def close(self) -> None:
        """It was stopped, and has closed its connection."""

    def post_process_message(self, message: Any) -> None:
        """Its end is handed over, which is all that there is to say."""

    def requeue_messages(self, messages: Iterable[Any]) -> None:
        """What was granted and not taken up has been handed back in Postgres."""

    async def _keep_connected(self) -> None:
        """Connects, and connects again whenever the connection is lost, until cancelled."""
        try:
            while True:
                try:
                    reason = await self._until_lost()
                except Exception as error:  # noqa: BLE001 - told as the others
                    reason = error
                # Its lines are said once an outage.
                logging.getLogger("rabbitmq").warning(words_of(reason), extra={"connection": ALL_QUEUES})
                await asyncio.sleep(AGAIN_SECONDS)
        finally:
            self._is_gone.set()

    async def _until_lost(self) -> BaseException:
        line = self.line = Line(self._settings, self._queues, on_doorbell=self._on_doorbell, on_open=self._connected)
        try:
            return await line.lost
        finally:
            await line.close()

    def _connected(self) -> None:
        logging.getLogger("rabbitmq").info("connected", extra={"connection": ALL_QUEUES})
        self._on_connected()
