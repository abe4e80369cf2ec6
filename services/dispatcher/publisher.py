"""Rings doorbells: publishes with pipelined confirms over one connection that comes back by itself."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import pika
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.channel import Channel

from windlass.shared import broker
from windlass.shared.admission import Broker
from windlass.shared.backoff import Backoff
from windlass.shared.errors import words_of
from windlass.shared.settings import Settings

log = logging.getLogger("dispatcher")

CONFIRM_SECONDS = 5
"""A doorbell that RabbitMQ has not confirmed by then counts as not rung."""


@dataclass(frozen=True)
class Doorbell:
    """A queue, and how many of its tasks to ask for first. Doorbells of one look have numbers."""

    queue: str
    starts: int
    number: int = 0


class BrokerBlocked(pika.exceptions.AMQPError):
    """RabbitMQ has said that it takes no messages: what is sent would lie in the network until it has room again."""


class GatheringConnection(AsyncioConnection):
    """Sends what is published in one turn of the loop at once: pika makes three calls of the system for each message,
    and those were a third of the time that publishing took."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self._gathered: list[bytes] = []
        super().__init__(*arguments, **options)

    def _adapter_emit_data(self, data: bytes) -> None:
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self._send_gathered)
        self._gathered.append(data)

    def _send_gathered(self) -> None:
        data, self._gathered = b"".join(self._gathered), []
        if self._transport is not None:  # type: ignore[attr-defined] # else it was lost meanwhile: told elsewhere
            super()._adapter_emit_data(data)  # type: ignore[misc]


class Publisher:
    """One connection, one channel in confirm mode, and the confirms that are still awaited."""

    def __init__(self, settings: Settings) -> None:
        self._parameters = broker.connection_parameters(settings)
        # A new connection would seem to be fine until it is used: this one knows, and is told when it is over.
        self._parameters.blocked_connection_timeout = None
        self._arguments = broker.queue_arguments(settings)
        self._channel: Channel | None = None
        self._declared: set[str] = set()
        self._next_tag = 1
        self._awaited: dict[int, asyncio.Future[bool]] = {}
        self._unroutable: set[str] = set()
        self.state: Broker = "away"
        self.blocked_for: str | None = None
        """RabbitMQ's own words, while it is blocked."""
        self.version: str | None = None
        """RabbitMQ's, as it said when it was last connected to."""
        self.takes_messages = asyncio.Event()
        self.changed = asyncio.Event()

    async def keep_connected(self) -> None:
        """Connects, and connects again whenever the connection is lost, until cancelled."""
        backoff = Backoff(first_seconds=0.1, longest_seconds=2)
        while True:
            closed: asyncio.Future[BaseException] = asyncio.get_running_loop().create_future()
            connection = self._connect(closed)
            try:
                reason = await closed
                if self.state != "away":
                    backoff.renew()
                pause = backoff.pause()
                logging.getLogger("rabbitmq").warning(words_of(reason))  # its lines are said once an outage
            finally:
                self._lose_channel()
                with suppress(pika.exceptions.AMQPError):
                    if connection.is_open:
                        connection.close()
            await asyncio.sleep(pause)

    async def ring(self, doorbells: Sequence[Doorbell]) -> list[Doorbell]:
        """Publishes all of them, then waits for all the confirms; returns those that were not rung."""
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                for queue in {bell.queue for bell in doorbells} - self._declared:
                    await self._declare(queue)
                confirms = [self._publish(bell) for bell in doorbells]
                rung = await asyncio.gather(*confirms, return_exceptions=True)
        except (TimeoutError, pika.exceptions.AMQPError) as error:
            log.warning("%d doorbells could not be rung (%s)", len(doorbells), words_of(error))
            return list(doorbells)
        missed = [bell for bell, confirmed in zip(doorbells, rung, strict=True) if confirmed is not True]
        missed += [bell for bell in doorbells if bell.queue in self._unroutable and bell not in missed]
        self._declared -= {bell.queue for bell in missed}
        self._unroutable.clear()
        return missed

    async def _declare(self, queue: str) -> Any:
        answered: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._open().queue_declare(
            queue, durable=True, arguments=self._arguments, callback=lambda frame: _settle(answered, frame)
        )
        async with asyncio.timeout(CONFIRM_SECONDS):
            answer = await answered
        self._declared.add(queue)
        return answer

    def _publish(self, bell: Doorbell) -> asyncio.Future[bool]:
        self._open().basic_publish(
            exchange="",
            routing_key=bell.queue,
            body=broker.doorbell(bell.queue, bell.starts),
            # Not persistent, and soon worth nothing: what is due is a row, and is rung for again.
            properties=pika.BasicProperties(expiration=broker.DOORBELL_EXPIRES_MS),
            mandatory=True,
        )
        confirm = self._awaited[self._next_tag] = asyncio.get_running_loop().create_future()
        self._next_tag += 1
        return confirm

    def _open(self) -> Channel:
        if self._channel is None or not self._channel.is_open:
            raise pika.exceptions.AMQPConnectionError("the connection was lost")
        if self.state == "blocked":
            raise BrokerBlocked(f"RabbitMQ takes no messages: {self.blocked_for}")
        return self._channel

    def _connect(self, closed: "asyncio.Future[BaseException]") -> AsyncioConnection:
        return GatheringConnection(
            self._parameters,
            on_open_callback=lambda connection: self._open_channel(connection, closed),
            on_open_error_callback=lambda _connection, error: _settle(closed, error),
            on_close_callback=lambda _connection, error: _settle(closed, error),
        )

    def _open_channel(self, connection: AsyncioConnection, closed: "asyncio.Future[BaseException]") -> None:
        self.version = (connection.server_properties or {}).get("version")
        connection.add_on_connection_blocked_callback(lambda _connection, frame: self._block(frame.method.reason))
        connection.add_on_connection_unblocked_callback(lambda _connection, _frame: self._unblock())

        def opened(channel: Channel) -> None:
            channel.add_on_close_callback(lambda _channel, error: _settle(closed, error))
            channel.add_on_return_callback(
                lambda _channel, method, _properties, _body: self._unroutable.add(str(method.routing_key))
            )
            channel.confirm_delivery(self._confirmed, callback=lambda _frame: self._use(channel))

        connection.channel(on_open_callback=opened)

    def _use(self, channel: Channel) -> None:
        self._channel, self._next_tag = channel, 1
        self._become("connected")
        logging.getLogger("rabbitmq").info("connected")

    def _block(self, reason: str) -> None:
        """A memory or disk alarm. RabbitMQ says so when it is sent something, and reads nothing more from us."""
        log.warning("RabbitMQ takes no messages (%s): tasks wait until it has room again", reason)
        self._become("blocked", reason)
        self._give_up_confirms()

    def _unblock(self) -> None:
        log.info("RabbitMQ takes messages again")
        self._become("connected")

    def _become(self, state: Broker, reason: str | None = None) -> None:
        if (state, reason) != (self.state, self.blocked_for):
            self.changed.set()
        self.state, self.blocked_for = state, reason
        if state == "connected":
            self.takes_messages.set()
        else:
            self.takes_messages.clear()

    def _confirmed(self, frame: Any) -> None:
        confirm, through = isinstance(frame.method, pika.spec.Basic.Ack), frame.method.delivery_tag
        tags = [tag for tag in self._awaited if tag <= through] if frame.method.multiple else [through]
        for tag in tags:
            _settle(self._awaited.pop(tag, None), confirm)

    def _lose_channel(self) -> None:
        self._become("away")
        self._channel = None
        self._declared.clear()
        self._give_up_confirms()

    def _give_up_confirms(self) -> None:
        for confirm in self._awaited.values():
            _settle(confirm, False)  # noqa: FBT003 - the confirm's own value: not rung
        self._awaited.clear()


def _settle(future: "asyncio.Future[Any] | None", value: Any) -> None:
    if future is not None and not future.done():
        future.set_result(value)
