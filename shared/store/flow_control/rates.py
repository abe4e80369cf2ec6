"""Request rates: further places in a provider's window."""

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetchrow


class Wait(Record):
    """No place is free: when to ask again, if anybody can tell, and the rate that is used up."""

    again_seconds: float | None
    rate_limit: int
    per_seconds: int


async def take(db: Database, provider: str) -> Wait | None:
    """Takes one more place in the provider's rate, if it has one and a place is free.

    An answer that is lost took a place at most: asked again, less is used than the rate allows, never more.
    """
    query = f"SELECT * FROM {named('take_rate')}($1)"  # noqa: S608 - a name of our own
    return await fetchrow(db, Wait, query, provider)
