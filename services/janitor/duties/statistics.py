"""Statistics: the figures of today and of yesterday, whose last tasks may still have been under way at midnight."""

from datetime import UTC, datetime, timedelta

from windlass.shared.db import Database
from windlass.shared.store.operating import statistics


async def keep_statistics(db: Database) -> None:
    today = datetime.now(UTC).date()
    for day in (today - timedelta(days=1), today):
        await statistics.keep_figures(db, day)
