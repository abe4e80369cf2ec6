"""Whether Postgres takes what is to be kept, asked at most once a second: everybody may ask for `/health`."""

import time

from windlass.shared.db import Database
from windlass.shared.store.operating import room
from windlass.shared.store.operating.room import Refusal

BELIEVED_SECONDS = 1.0


class Room:
    def __init__(self, pool: Database) -> None:
        self._pool = pool
        self._latest: Refusal | None = None
        self._asked_at = -BELIEVED_SECONDS

    async def refusal(self) -> Refusal | None:
        if time.monotonic() - self._asked_at >= BELIEVED_SECONDS:
            self._asked_at = time.monotonic()  # at once: who asks meanwhile is told what was known
            self._latest = await room.refusal(self._pool)
        return self._latest
