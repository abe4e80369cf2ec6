"""How many retries wait: what the lanes' shares depend on, asked for seldom, since counting thousands takes a while."""

import time
from collections.abc import Sequence
from dataclasses import replace

from windlass.shared.admission import ProviderView
from windlass.shared.db import Database
from windlass.shared.store.flow_control import providers
from windlass.shared.toml_tables import LaneSettings

BELIEVED_SECONDS = 1.0


class RetryBacklog:
    """The figures of the last second; nobody is asked while every look sees all the retries that wait."""

    def __init__(self, lanes: LaneSettings) -> None:
        self._lanes = lanes
        self._waiting: dict[str, int] = {}
        self._counted_at: dict[str, float] = {}

    async def fill_in(self, db: Database, views: Sequence[ProviderView]) -> list[ProviderView]:
        await self._count(db, [view for view in views if view.retry_due >= providers.DUE_COUNTED])
        return [
            replace(view, waiting_retries=self._waiting.get(view.name, view.retry_due))
            if view.retry_due >= providers.DUE_COUNTED
            else view
            for view in views
        ]

    async def _count(self, db: Database, views: Sequence[ProviderView]) -> None:
        now = time.monotonic()
        stale = [view for view in views if now - self._counted_at.get(view.name, -BELIEVED_SECONDS) >= BELIEVED_SECONDS]
        if stale:
            queues = [queue for view in stale for queue in view.queues]
            self._waiting |= await providers.waiting_retries(db, self._lanes, queues)
            self._counted_at |= dict.fromkeys((view.name for view in stale), now)
