"""Statistics: the figures of today, which are never older than a minute, and of yesterday, whose last tasks may still
have been under way at midnight."""

from datetime import UTC, datetime, timedelta

from windlass.shared.db import Database
from windlass.shared.store.operating import statistics


async def keep_today(db: Database) -> None:
    await statistics.keep_figures(db, datetime.now(UTC).date())


async def keep_yesterday(db: Database) -> None:
    await statistics.keep_figures(db, datetime.now(UTC).date() - timedelta(days=1))
