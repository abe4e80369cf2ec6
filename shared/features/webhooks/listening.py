"""The bit that is set while an endpoint subscribes to events. While it is set, the engine writes each covered move and
event to the outbox for this feature, whatever task it is of."""

from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.features.transactions import Session, transaction

BIT = Concern.WEBHOOK.value

SET_SECONDS = 3600
"""The bit stays set for at least this long, and after an upgrade too: an api process of an older build creates
endpoints without setting it."""


async def listen(db: Session) -> None:
    """Call it in the transaction that creates or changes a subscription, before the subscription is written. It locks
    the row, also if the bit is set, so `unset` either sees the subscription or runs before it. A move that begins after
    the commit sees the bit. One that began earlier happened before the endpoint existed."""
    await db.execute(
        """
        INSERT INTO global_subscriptions AS g (is_only, bits) VALUES (true, $1)
        ON CONFLICT (is_only) DO UPDATE SET bits = g.bits | excluded.bits, set_at = excluded.set_at
        WHERE g.bits & $1 = 0
        """,
        BIT,
    )


async def correct(db: Database) -> None:
    """Sets the bit for an endpoint that an older build created, and unsets it when no endpoint subscribes to
    anything."""
    is_right = """
        SELECT EXISTS (SELECT 1 FROM webhooks WHERE listens)
             = EXISTS (SELECT 1 FROM global_subscriptions WHERE bits & $1 <> 0)
    """
    if await db.fetchval(is_right, BIT):
        return
    async with transaction(db) as session:
        if await session.fetchval("SELECT EXISTS (SELECT 1 FROM webhooks WHERE listens)"):
            await listen(session)
        else:
            await unset(session)


async def unset(db: Session) -> None:
    """Locks the row, then looks. A subscription that is created at the same time waits, and sets the bit again."""
    await db.execute("SELECT 1 FROM global_subscriptions WHERE is_only = true FOR NO KEY UPDATE")
    await db.execute(
        """
        UPDATE global_subscriptions SET bits = bits & ~$1::int
        WHERE set_at < clock_timestamp() - make_interval(secs => $2)
          AND NOT EXISTS (SELECT 1 FROM webhooks WHERE listens)
        """,
        BIT,
        SET_SECONDS,
    )
