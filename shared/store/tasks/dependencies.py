"""Dependents of tasks that have ended or were revived: told in pages, so that nobody waits long for any one call."""

from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.metrics import counting
from windlass.shared.metrics.counting import Counts
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetchrow

DEPENDENTS_AT_ONCE = 500
BLOCKED_AT_ONCE = 1000


class Settled(Record):
    """What telling a page of dependents has done."""

    revived: list[Counts]
    ended: list[Counts]


class Rechecked(Record):
    """How far a page of the blocked reached, and what had to be mended."""

    reached: UUID | None
    mended: int
    ended: list[Counts]


async def settle_next(db: Database, *, at_most: int = DEPENDENTS_AT_ONCE) -> bool:
    """Tells the next page of the dependents that the end or the revival of their parent has left; false when there are
    none. Any number may do this at once."""
    row = await fetchrow(db, Settled, f"SELECT * FROM {named('settle_next')}($1)", at_most)  # noqa: S608 - a name of our own
    if row is not None:
        counting.revived(row.revived)
        counting.ended(row.ended)
    return row is not None


async def recheck(db: Database, after: UUID | None = None) -> tuple[UUID | None, int]:
    """Counts the dependencies of a page of the blocked tasks anew, and mends what it must; returns where the next page
    begins, none at the end, and how many were mended."""
    query = f"SELECT * FROM {named('recheck_blocked')}($1, $2)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, Rechecked, query, after or UUID(int=0), BLOCKED_AT_ONCE)
    assert row is not None, "a function with results always has a row"
    counting.ended(row.ended)
    return row.reached, row.mended
