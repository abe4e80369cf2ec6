"""Moves that could not be told to whom they concern: see `tell_moves`."""

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetchrow

AT_ONCE = 100
MOST_COUNTED = 1000


class ToldAgain(Record):
    """How many were told, and how many failed once more."""

    told: int
    failed: int


async def tell_again(db: Database, *, at_most: int = AT_ONCE) -> ToldAgain:
    """Tells those again whose time has come, the oldest first. Any number may do this at once."""
    query = f"SELECT * FROM {named('tell_again')}($1)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, ToldAgain, query, at_most)
    assert row is not None, "a function with outputs has a row"
    return row


async def count(db: Database) -> int:
    """As far as a thousand."""
    number: int = await db.fetchval(
        "SELECT count(*) FROM (SELECT 1 FROM untold ORDER BY untold_id LIMIT $1) AS untold", MOST_COUNTED
    )
    return number
