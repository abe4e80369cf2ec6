"""Ports that lead to servers, and can be cut off, reset, slowed down or black-holed: the network's part in a storm."""

import asyncio
import itertools
import select
import socket
import struct
import threading
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from windlass.services.laptop.ports import LOOPBACK, free_port

AT_ONCE = 65536
LOOK_FOR_HANG_UPS_SECONDS = 0.02
SEND_RESET = struct.pack("ii", 1, 0)
"""As SO_LINGER: close at once, and tell the other side by an RST that nothing can be relied upon."""


class Forwarders:
    """One thread for any number of forwarders; whoever uses them calls from any other."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, daemon=True)
        self._forwarders: list[Forwarder] = []

    def to(self, *server_urls: str, passes_hang_ups: bool = False) -> "Forwarder":
        """A new port that leads there: to each server in turn if there are several, as a balancer would."""
        forwarder = Forwarder(self, server_urls, passes_hang_ups=passes_hang_ups)
        self._forwarders.append(forwarder)
        forwarder.mend()
        return forwarder

    def do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self.loop).result(60)

    def pass_hang_ups(self) -> None:
        for forwarder in self._forwarders:
            forwarder.pass_hang_ups()

    async def _keep_passing_hang_ups(self) -> None:
        while True:
            self.pass_hang_ups()
            await asyncio.sleep(LOOK_FOR_HANG_UPS_SECONDS)

    async def _stop(self) -> None:
        for forwarder in self._forwarders:
            await forwarder.refuse()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)  # an aborted connection is closed in the loop's next turns, and not by itself

    @contextmanager
    def running(self) -> "Iterator[Forwarders]":
        self._thread.start()
        passing = asyncio.run_coroutine_threadsafe(self._keep_passing_hang_ups(), self.loop)
        try:
            yield self
        finally:
            passing.cancel()
            self.do(self._stop())
            self.loop.call_soon_threadsafe(self.loop.stop)
            self._thread.join()
            self.loop.close()


class Forwarder:
    """One port. What is done to it holds until it is mended."""

    def __init__(self, forwarders: Forwarders, server_urls: Sequence[str], *, passes_hang_ups: bool) -> None:
        """`passes_hang_ups`: whoever leaves is known to have left on the other side, also while nothing else gets
        through. A network need not be so kind. But a server that counts its open calls cannot know what a network hides
        from it, and its count would not be its clients' to answer for."""
        self.server_url = server_urls[0]
        self._forwarders = forwarders
        self._servers = [urlsplit(url) for url in server_urls]
        self._turns = itertools.count()
        self._passes_hang_ups = passes_hang_ups
        self._port = free_port()
        self._listening: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._leading: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._delay_seconds = 0.0

    @property
    def url(self) -> str:
        """The server's URL by way of this port."""
        server = self._servers[0]
        user, at, _ = server.netloc.rpartition("@")
        return urlunsplit(server._replace(netloc=f"{user}{at}{LOOPBACK}:{self._port}"))

    def cut(self) -> None:
        """Connections are refused, and those that are open end."""
        self._forwarders.do(self.refuse())

    def reset(self) -> None:
        """Those that are open end with an RST; new ones are welcome."""
        self._forwarders.do(self._reset())

    def delay(self, seconds: float) -> None:
        """All that passes takes so much longer, in either direction."""
        self._delay_seconds = seconds

    def freeze(self) -> None:
        """Connections stay, new ones are accepted, and nothing passes: a black hole."""
        self._forwarders.loop.call_soon_threadsafe(self._flowing.clear)

    def mend(self) -> None:
        self._forwarders.do(self._mend())

    async def refuse(self) -> None:
        if self._listening is not None:
            listening, self._listening = self._listening, None
            # Nobody more is accepted, and who has been is let in first: asyncio forgets to close a connection whose
            # server was closed between the two.
            for each in listening.sockets:
                self._forwarders.loop.remove_reader(each.fileno())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            listening.close()
        for connection in self._connections:
            connection.abort()

    def pass_hang_ups(self) -> None:
        """Whoever has left is gone on the other side, too, before this returns."""
        if self._passes_hang_ups:
            for connection in self._connections:
                connection.pass_hang_up()

    async def _mend(self) -> None:
        self._delay_seconds = 0.0
        self._flowing.set()
        if self._listening is None:
            self._listening = await asyncio.start_server(self._accept, LOOPBACK, self._port)

    async def _reset(self) -> None:
        for connection in self._connections:
            connection.reset()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = Connection(writer)
        self._connections.add(connection)
        leading = self._forwarders.loop.create_task(self._lead(reader, connection))
        self._leading.add(leading)
        leading.add_done_callback(lambda _: self._hang_up(leading, connection))

    def _hang_up(self, leading: asyncio.Task[None], connection: "Connection") -> None:
        """Also when `_lead` was cancelled before its first line."""
        self._leading.discard(leading)
        self._connections.discard(connection)
        connection.abort()

    async def _lead(self, reader: asyncio.StreamReader, connection: "Connection") -> None:
        await self._flowing.wait()
        with suppress(ConnectionError):
            there = await self._reach_a_server(connection)
            if there is not None and connection.server is not None:
                both = self._carry(reader, connection.server), self._carry(there, connection.client)
                await asyncio.gather(*both)

    async def _reach_a_server(self, connection: "Connection") -> asyncio.StreamReader | None:
        first = next(self._turns)
        for number in range(len(self._servers)):
            server = self._servers[(first + number) % len(self._servers)]
            with suppress(OSError):
                there, connection.server = await asyncio.open_connection(server.hostname, server.port)
                return there
        return None

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(AT_ONCE):
            await self._may_pass()
            if self._passes_hang_ups:
                # Whoever left before this was said must not be met by it: the thread may be late with either.
                self._forwarders.pass_hang_ups()
            writer.write(data)
            await writer.drain()
        if not self._passes_hang_ups:
            await self._may_pass()
        writer.close()

    async def _may_pass(self) -> None:
        await asyncio.sleep(self._delay_seconds)
        await self._flowing.wait()


class Connection:
    """Both halves of one connection; the second is missing until a server was reached."""

    def __init__(self, client: asyncio.StreamWriter) -> None:
        self.client = client
        self.server: asyncio.StreamWriter | None = None

    def _halves(self) -> list[asyncio.StreamWriter]:
        return [self.client] if self.server is None else [self.client, self.server]

    def abort(self) -> None:
        for writer in self._halves():
            writer.transport.abort()

    def reset(self) -> None:
        for writer in self._halves():
            if not writer.transport.is_closing():
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, SEND_RESET)
        self.abort()

    def pass_hang_up(self) -> None:
        """As the kernel knows it, which may be some moments before the loop hears of it; told at once, likewise."""
        if self.server is None or self.server.transport.is_closing():
            return
        poll = select.poll()
        if not self.client.transport.is_closing():
            poll.register(self.client.get_extra_info("socket").fileno(), select.POLLRDHUP)
            if not poll.poll(0):
                return
        with suppress(OSError):
            self.server.get_extra_info("socket").shutdown(socket.SHUT_RDWR)
        self.abort()


@contextmanager
def forwarding(server_url: str) -> Iterator[Forwarder]:
    """The one forwarder of a test that needs no second."""
    with Forwarders().running() as forwarders:
        yield forwarders.to(server_url)
