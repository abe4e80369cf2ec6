"""The figures of the queues: counted when somebody asks, and where that is dear, once a second."""

import time

from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.store.operating import queues
from windlass.shared.store.operating.queues import LOOKED_AT, QueueStatus

BELIEVED_SECONDS = 1.0
"""So long figures are believed that have to be counted row by row: ten pages that watch a million tasks would keep a
core busy. All others are as new as the question."""

Figures = tuple[list[QueueStatus], dict[str, int]]


class QueueFigures:
    """What was counted last for each user, while it is believed; `None` is everybody."""

    def __init__(
        self,
        settings: Settings,
        pool: Database,
        *,
        believed_seconds: float = BELIEVED_SECONDS,
        looked_at: int = LOOKED_AT,
    ) -> None:
        self._pool = pool
        self._heard_within_seconds = settings.lease_seconds
        self._believed_seconds = believed_seconds
        self._looked_at = looked_at
        self._believed: dict[str | None, tuple[float, Figures]] = {}

    async def of(self, user_id: str | None) -> Figures:
        believed = self._believed.get(user_id)
        if believed is not None and time.monotonic() < believed[0]:
            return believed[1]
        began = time.monotonic()
        figures = await queues.status(
            self._pool, user_id=user_id, heard_within_seconds=self._heard_within_seconds, looked_at=self._looked_at
        )
        self._believed = {each: kept for each, kept in self._believed.items() if kept[0] > began}
        if any(min(row.fresh, row.scheduled) >= self._looked_at for row in figures[0]):
            self._believed[user_id] = (began + self._believed_seconds, figures)
        return figures
