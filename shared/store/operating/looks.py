"""What a janitor's timer has to know: one question for all that it waits for, and for all that there is to do."""

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetchrow


class Look(Record):
    """In so many seconds by Postgres' clock; none where there is nothing to wait for."""

    lease_seconds: float | None
    """Until the earliest lease runs out of a task that we may take back."""
    idle: list[str]
    """The duties that would find nothing."""


async def look(db: Database, *, for_duties: bool = True) -> Look:
    """Without asking for duties nobody is idle."""
    idle = f"{named('idle_duties')}()" if for_duties else "'{}'::text[]"
    row = await fetchrow(
        db,
        Look,
        f"""
        SELECT extract(epoch FROM (
                   SELECT min(lease_expires_at) FROM tasks WHERE status = 'running'
               ) - clock_timestamp())::float AS lease_seconds,
               {idle} AS idle
        """,  # noqa: S608 - a name of our own
    )
    assert row is not None, "one row, whatever there is"
    return row
