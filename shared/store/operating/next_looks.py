"""When a janitor's timer has to look again: one question for all that it waits for."""

from windlass.shared.db import Database
from windlass.shared.store import functions
from windlass.shared.store.record import Record, fetchrow


class NextLooks(Record):
    """In so many seconds by Postgres' clock; none where there is nothing to wait for."""

    lease_seconds: float | None
    """Until the earliest lease runs out of a task that we may take back."""
    schedule_seconds: float | None
    """Until the next schedule is due: however many there are, it is one probe of an index."""


async def next_looks(db: Database) -> NextLooks:
    row = await fetchrow(
        db,
        NextLooks,
        """
        SELECT extract(epoch FROM (
                   SELECT min(lease_expires_at) FROM tasks WHERE status = 'running' AND level <= $1
               ) - clock_timestamp())::float AS lease_seconds,
               extract(epoch FROM (
                   SELECT min(next_at) FROM schedules WHERE next_at IS NOT NULL
               ) - clock_timestamp())::float AS schedule_seconds
        """,
        functions.LEVEL,
    )
    assert row is not None, "one row, whatever there is"
    return row
