"""A client of event streams over a bare socket: nothing is buffered, retried or hidden on the way."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

from tests.support.installation import KEY


class Event(NamedTuple):
    """As the stream told it; `id` is text as it came."""

    id: str
    name: str
    data: Any


class EventReader:
    """One answer, read as far as the test wants."""

    def __init__(self, reader: asyncio.StreamReader) -> None:
        self._reader = reader
        self.status = 0
        self.headers: dict[str, str] = {}
        self.last_id = ""
        self.retry: int | None = None
        self.pings = 0
        self.first_chunk = b""
        self._rest = b""
        self._ended = False

    async def read_head(self) -> None:
        self.status = int((await self._whole_line()).split()[1])
        while line := (await self._reader.readline()).decode().strip():
            name, _, value = line.partition(":")
            self.headers[name.lower()] = value.strip()

    async def body(self) -> bytes:
        """The whole of an answer that is no stream."""
        return await self._reader.readexactly(int(self.headers.get("content-length", 0)))

    async def event(self) -> Event | None:
        """The next event; none when the server has ended the stream in order. A connection cut off raises."""
        fields: dict[str, str] = {}
        while (line := await self._line()) is not None:
            name, _, value = line.partition(": ")
            if line.startswith(":"):
                self.pings += 1
            elif line:
                fields[name] = value
            else:
                self.last_id = fields.get("id", self.last_id)
                self.retry = int(fields.get("retry", self.retry or 0))
                if "data" in fields:
                    return Event(fields["id"], fields["event"], json.loads(fields["data"]))
                fields = {}
        return None

    async def all(self) -> list[Event]:
        """Until the server ends it."""
        return [event async for event in self]

    async def some(self, number: int) -> list[Event]:
        events = [await self.event() for _ in range(number)]
        assert None not in events, f"the stream ended early: {events}"
        return [event for event in events if event is not None]

    def __aiter__(self) -> AsyncIterator[Event]:
        return self

    async def __anext__(self) -> Event:
        event = await self.event()
        if event is None:
            raise StopAsyncIteration
        return event

    async def _line(self) -> str | None:
        while b"\n" not in self._rest:
            if self._ended:
                return None
            size = int(await self._whole_line(), 16)
            chunk = (await self._reader.readexactly(size + 2))[:-2]
            self.first_chunk = self.first_chunk or chunk
            self._rest += chunk
            self._ended = size == 0
        line, _, self._rest = self._rest.partition(b"\n")
        return line.decode()

    async def _whole_line(self) -> bytes:
        line = await self._reader.readline()
        if not line.endswith(b"\n"):
            raise ConnectionResetError("the server hung up before its answer was at its end")
        return line


@asynccontextmanager
async def reading(
    port: int, path: str, *, key: str | None = KEY, receive_buffer: int | None = None, **headers: str
) -> AsyncIterator[EventReader]:
    """Opens a path of the api; `last_event_id="3"` is sent as `Last-Event-ID`."""
    connection = socket.socket()
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, ("127.0.0.1", port))
    except OSError:
        connection.close()
        raise
    reader, writer = await asyncio.open_connection(sock=connection, limit=2**16 if receive_buffer is None else 2**10)
    try:
        lines = [f"GET {path} HTTP/1.1", f"Host: 127.0.0.1:{port}"]
        lines += [f"Authorization: Bearer {key}"] if key else []
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        writer.write("\r\n".join([*lines, "", ""]).encode())
        answer = EventReader(reader)
        await answer.read_head()
        yield answer
    finally:
        writer.transport.abort()
