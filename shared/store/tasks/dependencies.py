"""Dependents of tasks that have ended or were revived: told in pages, so that nobody waits long for any one call."""

from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.metrics import counting

DEPENDENTS_AT_ONCE = 500
BLOCKED_AT_ONCE = 1000


async def settle_next(db: Database, *, at_most: int = DEPENDENTS_AT_ONCE) -> bool:
    """Tells the next page of the dependents that the end or the revival of their parent has left; false when there are
    none. Any number may do this at once."""
    row = await db.fetchrow("SELECT * FROM settle_next($1)", at_most)
    return row is not None and bool(counting.changed(row))


async def recheck(db: Database, after: UUID | None = None) -> tuple[UUID | None, int]:
    """Counts the dependencies of a page of the blocked tasks anew, and mends what it must; returns where the next page
    begins, none at the end, and how many were mended."""
    row = await db.fetchrow("SELECT * FROM recheck_blocked($1, $2)", after or UUID(int=0), BLOCKED_AT_ONCE)
    assert row is not None, "a function with results always has a row"
    counting.ended(row["ended"])
    return row["reached"], row["mended"]
