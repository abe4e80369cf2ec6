"""Clients of streams that go away at random and come back to where they were, until the server says that it is over."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Sequence
from urllib.parse import urlsplit

from tests.chaos.record import ManyRead, Record, StreamRead
from tests.support.event_reader import Event, EventReader, reading

OPEN_SECONDS = 5.0
SILENT_SECONDS = 20.0
"""Longer than between two pings: a connection that says nothing for this long leads nowhere."""

ENDS = {"complete", "error", "cancelled"}
TROUBLE = (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError, IndexError)
"""What a connection can fail with that is cut off in the middle of a line or a chunk."""


class Over(Exception):
    """The server has said that there is nothing more to come."""


class Follower:
    """Of one task. What it has seen is in the record as soon as it stops, for whatever reason."""

    def __init__(self, api_urls: Sequence[str], record: Record, dice: random.Random, task_id: str, key: str) -> None:
        self._ports = [_port(url) for url in api_urls]
        self._record = record
        self._dice = dice
        self._task_id = task_id
        self._key = key
        self._seqs: list[int] = []
        self._types: list[str] = []
        self._connections = 0

    async def follow(self) -> None:
        is_whole = False
        try:
            while not is_whole:
                is_whole = await self._connect()
                if not is_whole:
                    await asyncio.sleep(self._dice.uniform(0, 0.6))
        finally:
            self._record.streams.append(
                StreamRead(self._task_id, self._seqs, self._types, self._connections, is_whole=is_whole)
            )

    async def _connect(self) -> bool:
        """One connection; true when the story is over."""
        self._connections += 1
        path = f"/api/v1/tasks/{self._task_id}/stream"
        last_seen = {"last_event_id": str(self._seqs[-1])} if self._seqs else {}
        # Most clients stay; the others leave after some events or some time, and so in the middle of whatever.
        leaves_after = self._dice.choice((1, 2, 3, 5, 1000, 1000, 1000))
        try:
            async with asyncio.timeout(OPEN_SECONDS) as opening:
                async with reading(
                    self._dice.choice(self._ports), path, key=self._key, receive_buffer=None, **last_seen
                ) as reader:
                    opening.reschedule(None)
                    return await self._read(reader, leaves_after)
        except Over:
            return True
        except TROUBLE:
            return False

    async def _read(self, reader: EventReader, leaves_after: int) -> bool:
        if reader.status == 204:
            raise Over
        if reader.status != 200:
            if reader.status < 500:
                words = f"the stream of an accepted task was refused with {reader.status} after {self._seqs[-1:]}"
                self._record.broken_words.append((self._task_id, words))
                raise Over
            return False
        while leaves_after > 0:
            event = await _next(reader)
            if event is None:
                return bool(self._types) and self._types[-1] in ENDS
            self._seqs.append(int(event.id))
            self._types.append(event.name)
            leaves_after -= 1
        return False


class ManyFollower:
    """Of everybody's tasks. `submit` makes a mark: a task that completes by itself."""

    def __init__(
        self,
        api_urls: Sequence[str],
        record: Record,
        dice: random.Random,
        submit: Callable[[], Awaitable[str]],
        key: str,
    ) -> None:
        self._ports = [_port(url) for url in api_urls]
        self._record = record
        self._dice = dice
        self._submit = submit
        self._key = key
        self._events: list[tuple[str, int]] = []
        self._cursor = ""
        self._connections = 0
        self._is_open = asyncio.Event()
        self._may_end = asyncio.Event()
        self._last_mark: str | None = None
        self._ended: set[str] = set()

    def may_end(self) -> None:
        """Everything else is done: what it has not seen by its last mark it has missed."""
        self._may_end.set()

    async def follow(self) -> None:
        listening = asyncio.create_task(self._listen())
        first_mark, is_whole = "", False
        try:
            await self._is_open.wait()
            first_mark = await self._submit()
            await self._may_end.wait()
            self._last_mark = await self._submit()
            if self._last_mark not in self._ended:  # the stream may be faster than the answer to the submit
                await listening
            is_whole = True
        finally:
            listening.cancel()
            read = ManyRead(first_mark, self._last_mark or "", self._events, self._connections, is_whole=is_whole)
            self._record.many_streams.append(read)

    async def _listen(self) -> None:
        try:
            while True:
                self._connections += 1
                try:
                    await self._connect()
                except TROUBLE:
                    await asyncio.sleep(self._dice.uniform(0, 0.6))
        except Over:
            return

    async def _connect(self) -> None:
        resumed = {"last_event_id": self._cursor} if self._cursor else {}
        leaves_after = self._dice.choice((50, 200, 100_000))
        async with asyncio.timeout(OPEN_SECONDS) as opening:
            async with reading(
                self._dice.choice(self._ports), "/api/v1/stream", key=self._key, receive_buffer=None, **resumed
            ) as reader:
                opening.reschedule(None)
                if reader.status != 200:
                    raise ConnectionRefusedError(reader.status)
                await self._read(reader, leaves_after)

    async def _read(self, reader: EventReader, leaves_after: int) -> None:
        asyncio.get_running_loop().call_later(1, self._look_at, reader)
        while leaves_after > 0:
            event = await _next(reader)
            if event is None:
                return
            self._cursor = event.id
            self._is_open.set()
            self._events.append((event.data["task_id"], event.data["seq"]))
            if event.name in ENDS:
                self._ended.add(event.data["task_id"])
                if event.data["task_id"] == self._last_mark:
                    raise Over
            leaves_after -= 1

    def _look_at(self, reader: EventReader) -> None:
        """The stream says where it begins before anything happens: from there on nothing is lost."""
        if reader.last_id and not self._cursor:
            self._cursor = reader.last_id
            self._is_open.set()


async def _next(reader: EventReader) -> Event | None:
    async with asyncio.timeout(SILENT_SECONDS):
        return await reader.event()


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None, f"{url} names no port"
    return port
