"""The actors that rows speak of, kept in memory: no submission costs a question about its actor."""

import asyncio
from contextlib import suppress

from windlass.services.api.http.errors import RETRY_AFTER_SECONDS, Problem
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.operating import registry
from windlass.shared.submission.known import Actors, built_in_actors, known_actors


class Registry:
    """What counts now. It follows what is registered within moments, for it is told; and looks now and then by itself,
    for who dies says nothing."""

    def __init__(self, settings: Settings, pool: db.Database) -> None:
        self._settings = settings
        self._pool = pool
        self._news = asyncio.Event()
        self._is_read = False
        self.known_so_far: Actors = built_in_actors()

    @property
    def actors(self) -> Actors:
        """Who has only just started cannot say that there is no such actor: its client would not ask again."""
        if not self._is_read:
            detail = "this api has only just started, and has not read yet which actors there are"
            raise Problem(503, "database-unavailable", detail, headers={"Retry-After": str(RETRY_AFTER_SECONDS)})
        return self.known_so_far

    def heard(self, _said: str) -> None:
        self._news.set()

    async def run(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            with suppress(*db.AWAY_OR_BUSY):  # what was known goes on until there is a better answer
                await self.look(self._pool)

    async def look(self, connection: db.Database) -> None:
        """Now and then by a connection that would be asked something anyway."""
        with suppress(*db.NOT_MIGRATED):
            rows = await registry.read(connection, heard_within_seconds=self._settings.lease_seconds)
            served = await registry.queues(connection)
            self.known_so_far = known_actors(rows, served)
            self._is_read = True
