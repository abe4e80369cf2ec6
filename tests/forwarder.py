"""A port that leads to a server, and can be cut off or frozen: the network's part in an outage."""

import asyncio
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import urlsplit, urlunsplit

from tests.windlass import free_port


class Forwarder:
    """Runs on a thread of its own; whoever uses it calls from any other."""

    def __init__(self, server_url: str) -> None:
        self.server_url = server_url
        self._server = urlsplit(server_url)
        self._port = free_port()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._listening: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._leading: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()

    @property
    def url(self) -> str:
        """The server's URL by way of this port."""
        user = self._server.netloc.rpartition("@")[0]
        return urlunsplit(self._server._replace(netloc=f"{user}@127.0.0.1:{self._port}"))

    def cut(self) -> None:
        """Connections are refused, and those that are open end."""
        self._do(self._cut())

    def mend(self) -> None:
        self._do(self._mend())

    def freeze(self) -> None:
        """Connections stay and carry nothing."""
        self._loop.call_soon_threadsafe(self._flowing.clear)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(10)

    async def _mend(self) -> None:
        self._flowing.set()
        if self._listening is None:
            self._listening = await asyncio.start_server(self._accept, "127.0.0.1", self._port)

    async def _cut(self) -> None:
        if self._listening is not None:
            self._listening.close()
            self._listening = None
        for writer in self._writers:
            writer.transport.abort()

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        leading = self._loop.create_task(self._lead(reader, writer))
        self._leading.add(leading)
        leading.add_done_callback(lambda _: self._hang_up(leading, writer))

    def _hang_up(self, leading: asyncio.Task[None], writer: asyncio.StreamWriter) -> None:
        """Also when `_lead` was cancelled before its first line."""
        self._leading.discard(leading)
        self._writers.discard(writer)
        writer.transport.abort()

    async def _lead(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            there, back = await asyncio.open_connection(self._server.hostname, self._server.port)
            self._writers.add(back)
            try:
                await asyncio.gather(self._carry(reader, back), self._carry(there, writer))
            finally:
                self._writers.discard(back)
                back.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            await self._flowing.wait()
            writer.write(data)
        writer.close()

    async def _stop(self) -> None:
        await self._cut()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await asyncio.sleep(0.01)  # an aborted connection is closed in the loop's next turns, and not by itself

    @contextmanager
    def running(self) -> "Iterator[Forwarder]":
        self._thread.start()
        self.mend()
        try:
            yield self
        finally:
            self._do(self._stop())
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
