"""The actors that rows speak of, kept in memory: no submission costs a question about its actor."""

import asyncio
import time
from contextlib import suppress

from windlass.services.api.http.errors import RETRY_AFTER_SECONDS, Problem
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.operating import registry, unused
from windlass.shared.store.operating.queues import QueueStatus
from windlass.shared.store.operating.registry import Served
from windlass.shared.submission.known import Actors, built_in_actors, known_actors

UNUSED_SECONDS = 30.0
"""So long it is believed what nobody uses."""


class Shown:
    """What views leave out: actors, providers and queues that nothing names and nobody has used for a day, or that were
    forgotten."""

    def __init__(self, served: list[Served], unused_queues: list[Served], settings: Settings) -> None:
        left_out = {(each.actor, each.provider) for each in unused_queues}
        known = {(each.actor, each.provider) for each in served}
        shown = known - left_out
        self._queues = shown | {tuple(queue.split(".", 1)) for queue in unused.named_queues(settings)}
        self._actors = {actor for actor, _ in left_out} - {actor for actor, _ in shown}
        self._providers = {provider for _, provider in left_out} - {provider for _, provider in shown}

    def has_actor(self, name: str) -> bool:
        return name not in self._actors

    def has_provider(self, name: str) -> bool:
        return name not in self._providers

    def has_queue(self, row: QueueStatus) -> bool:
        is_live = row.fresh or row.retry or row.scheduled or row.blocked or row.running or row.workers
        return bool(is_live) or row.queue is None or (row.actor, row.provider) in self._queues


class Registry:
    """What counts now. It follows what is registered within moments, for it is told; and looks now and then by itself,
    for who dies says nothing."""

    def __init__(self, settings: Settings, pool: db.Database) -> None:
        self._settings = settings
        self._pool = pool
        self._news = asyncio.Event()
        self._is_read = False
        self._unused_read_at = -UNUSED_SECONDS
        self.known_so_far: Actors = built_in_actors()
        self.shown: Shown | None = None
        """None until it has been read."""

    @property
    def actors(self) -> Actors:
        """Who has only just started cannot say that there is no such actor: its client would not ask again."""
        if not self._is_read:
            detail = "this api has only just started, and has not read yet which actors there are"
            raise Problem(503, "database-unavailable", detail, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})
        return self.known_so_far

    def heard(self, _said: str) -> None:
        self._unused_read_at = -UNUSED_SECONDS
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            with suppress(*db.AWAY_OR_BUSY):  # what was known goes on until there is a better answer
                await self.look(self._pool)

    async def look_anew(self, connection: db.Database) -> None:
        """At everything, and now."""
        self._unused_read_at = -UNUSED_SECONDS
        await self.look(connection)

    async def look(self, connection: db.Database) -> None:
        """Now and then by a connection that would be asked something anyway."""
        with suppress(*db.NOT_MIGRATED):
            rows = await registry.read(connection, heard_within_seconds=self._settings.lease_seconds)
            served = await registry.queues(connection)
            self.known_so_far = known_actors(rows, served)
            self._is_read = True
            if time.monotonic() - self._unused_read_at >= UNUSED_SECONDS:
                self._unused_read_at = time.monotonic()
                named = unused.named_queues(self._settings)
                self.shown = Shown(served, await unused.unused_queues(connection, named), self._settings)
