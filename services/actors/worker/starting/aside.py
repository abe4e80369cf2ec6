"""Tasks that cannot be claimed, for a reason nobody thought of: they are passed over for a while and hold up nobody."""

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Protocol
from uuid import UUID

from windlass.shared import db
from windlass.shared.errors import words_of

log = logging.getLogger("actors.starts")

ASIDE_SECONDS = 10.0


class Store(Protocol):
    """Who knows which of those that are next cannot be claimed, and why."""

    async def unclaimable(self, queues: Sequence[str], aside: Sequence[UUID]) -> Mapping[UUID, str]: ...


class Aside:
    """Whom this process does not ask for, and until when."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._until: dict[UUID, float] = {}

    def now(self) -> list[UUID]:
        if self._until:
            now = time.monotonic()
            self._until = {task_id: until for task_id, until in self._until.items() if until > now}
        return list(self._until)

    async def look_for_more(self, queues: Sequence[str]) -> bool:
        """A claim failed: tells of each that is the cause, and whether there was one."""
        try:
            found = await self._store.unclaimable(queues, self.now())
        except db.AWAY_OR_BUSY as error:
            log.warning("who could not be claimed is not known (%s)", words_of(error))
            return False
        for task_id, reason in found.items():
            log.error("task %s could not be claimed, and is passed over for %g s: %s", task_id, ASIDE_SECONDS, reason)
        self._until |= dict.fromkeys(found, time.monotonic() + ASIDE_SECONDS)
        return bool(found)
