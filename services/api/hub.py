"""Wakes streams: one LISTEN connection per process, one flag per subscriber. What happened is read from rows."""

import asyncio
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from shared import db
from shared.settings import Settings
from shared.store import events


class Hub:
    """Who waits for which task."""

    def __init__(self, settings: Settings, pool: db.Database) -> None:
        self._settings = settings
        self._pool = pool
        self._subscribers: defaultdict[UUID, set[asyncio.Event]] = defaultdict(set)
        self._seen: dict[UUID, int] = {}
        self.closing = asyncio.Event()

    @contextmanager
    def subscribe(self, task_id: UUID) -> Iterator[asyncio.Event]:
        """A flag that is set when the task may have news. Subscribe before the first read, or miss what comes between.

        Leaving is synchronous: a client's disconnection cancels whatever the stream still awaits.
        """
        flag = asyncio.Event()
        self._subscribers[task_id].add(flag)
        try:
            yield flag
        finally:
            self._subscribers[task_id].discard(flag)
            if not self._subscribers[task_id]:
                del self._subscribers[task_id]
                self._seen.pop(task_id, None)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(db.Listener(self._settings, "api", {"windlass_events": self._wake}).run())
            group.create_task(self._poll())

    def close(self) -> None:
        """Lets every stream end; clients resume elsewhere."""
        self.closing.set()
        self._wake("*")

    def _wake(self, payload: str) -> None:
        if payload == "*":
            woken = list(self._subscribers)
        else:
            woken = [task_id for each in payload.split(",") if (task_id := UUID(each)) in self._subscribers]
        for task_id in woken:
            for flag in self._subscribers[task_id]:
                flag.set()

    async def _poll(self) -> None:
        """The safety net under NOTIFY: one question for all subscribed tasks, and none while nobody listens."""
        while True:
            await asyncio.sleep(self._settings.safety_poll_seconds)
            if not self._subscribers:
                continue
            try:
                newest = await events.newest(self._pool, list(self._subscribers))
            except db.AWAY_OR_BUSY:
                continue
            for task_id, seq in newest.items():
                if seq != self._seen.get(task_id) and task_id in self._subscribers:
                    self._seen[task_id] = seq
                    self._wake(str(task_id))
