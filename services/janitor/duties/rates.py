"""Rate counters: those that have expired are removed. They count for nobody, and every second makes new ones."""

from windlass.shared.db import Database
from windlass.shared.store.flow_control import rates


async def forget_expired_rates(db: Database) -> None:
    while await rates.forget_expired(db):
        pass
