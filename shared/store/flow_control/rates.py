"""Request rates: further places in a provider's, and the counters of Dramatiq's limiters."""

from collections.abc import Sequence

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


async def add(db: Database, key: str, value: int, *, ttl_seconds: float) -> bool:
    """Whether the counter was not there, and is now."""
    return bool(await db.fetchval(f"SELECT {named('add_rate_counter')}($1, $2, $3)", key, value, ttl_seconds))


async def move(
    db: Database,
    key: str,
    change: int,
    *,
    summed: Sequence[str] = (),
    lowest: int | None = None,
    highest: int | None = None,
    ttl_seconds: float,
) -> bool:
    """Whether the counter was moved: it stays within its bounds, and the sum below the higher one."""
    return bool(
        await db.fetchval(
            f"SELECT {named('move_rate_counter')}($1, $2, $3, $4, $5, $6)",
            key,
            list(summed),
            change,
            lowest,
            highest,
            ttl_seconds,
        )
    )


async def announce(db: Database, key: str, *, ttl_seconds: float) -> None:
    """Leaves word for whoever waits for the key, now or until the word expires."""
    await db.execute(
        """
        INSERT INTO rate_counters (key, value, expires_at)
        VALUES ($1, 1, clock_timestamp() + make_interval(secs => $2))
        ON CONFLICT (key) DO UPDATE SET value = excluded.value, expires_at = excluded.expires_at
        """,
        key,
        ttl_seconds,
    )


async def is_announced(db: Database, key: str) -> bool:
    return bool(
        await db.fetchval(
            "SELECT EXISTS (SELECT 1 FROM rate_counters WHERE key = $1 AND expires_at > clock_timestamp())", key
        )
    )


async def forget_expired(db: Database, *, limit: int = 1000) -> int:
    """Removes counters that nobody counts with any more; returns how many."""
    rows = await db.fetch(
        """
        -- Materialized: asked again for each row, as a plan may have it, the limit would be none.
        WITH expired AS MATERIALIZED (
            SELECT key FROM rate_counters WHERE expires_at < now()
            ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
        )
        DELETE FROM rate_counters r USING expired WHERE r.key = expired.key RETURNING r.key
        """,
        limit,
    )
    return len(rows)
