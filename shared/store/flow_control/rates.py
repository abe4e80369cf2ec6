"""Request rates: the counters of the limiters, and the rate that is in force for a provider."""

from collections.abc import Sequence
from dataclasses import dataclass

from windlass.shared.db import Database
from windlass.shared.store.functions import named


@dataclass(frozen=True)
class RateInForce:
    """What an operator has set for a provider, or else what is configured; none is no limit. With Postgres' time."""

    limit: int | None
    per_seconds: int | None
    seconds_since_epoch: float


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
        DELETE FROM rate_counters WHERE key IN (
            SELECT key FROM rate_counters WHERE expires_at < now()
            ORDER BY expires_at LIMIT $1 FOR UPDATE SKIP LOCKED
        ) RETURNING key
        """,
        limit,
    )
    return len(rows)


async def in_force(db: Database, provider: str) -> RateInForce:
    row = await db.fetchrow(
        """
        SELECT (rate ->> 'limit')::int AS limit, (rate ->> 'per_seconds')::int AS per_seconds,
               extract(epoch FROM clock_timestamp())::float AS seconds_since_epoch
        FROM (SELECT (SELECT coalesce(rate_override, configured_rate) FROM providers WHERE name = $1) AS rate) AS one
        """,
        provider,
    )
    assert row is not None
    return RateInForce(**row)
