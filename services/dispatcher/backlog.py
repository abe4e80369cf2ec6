"""How many retries wait: what the lanes' shares depend on, asked for seldom, since counting thousands takes a while."""

import math
import time
from collections.abc import Sequence

from windlass.shared.admission import ProviderView
from windlass.shared.db import Database
from windlass.shared.store.flow_control import providers
from windlass.shared.toml_tables import LaneSettings

BELIEVED_SECONDS = 1.0


class RetryBacklog:
    """The figures of the last second; nobody is asked while every look sees all the retries that wait."""

    def __init__(self, lanes: LaneSettings, *, believed_seconds: float = BELIEVED_SECONDS) -> None:
        self._lanes = lanes
        self._believed_seconds = believed_seconds
        self._waiting: dict[str, int] = {}
        self._counted_at: dict[str, float] = {}

    async def share(self, db: Database, views: Sequence[ProviderView]) -> None:
        """Writes what part of the starts goes to retries, where it is no longer as it was: claims decide by that."""
        await self._count(db, [view for view in views if view.retry_due >= providers.DUE_COUNTED])
        shares = {view.name: self._lanes.retry_share(self._waiting_at(view)) for view in views if view.retry_due}
        changed = {
            view.name: shares[view.name]
            for view in views
            if shares.get(view.name, view.retry_share) != view.retry_share
        }
        if changed:
            await providers.share_between_lanes(db, changed)

    def _waiting_at(self, view: ProviderView) -> int:
        if view.retry_due < providers.DUE_COUNTED:
            return view.retry_due
        return self._waiting.get(view.name, view.retry_due)

    async def _count(self, db: Database, views: Sequence[ProviderView]) -> None:
        now = time.monotonic()
        believed_since = now - self._believed_seconds
        stale = [view for view in views if self._counted_at.get(view.name, -math.inf) <= believed_since]
        if stale:
            queues = [queue for view in stale for queue in view.queues]
            self._waiting |= await providers.waiting_retries(db, self._lanes, queues)
            self._counted_at |= dict.fromkeys((view.name for view in stale), now)
