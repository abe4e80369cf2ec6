"""The bit that is set while an endpoint subscribes to events. While it is set, the engine writes each covered move and
event to the outbox for this feature, whatever task it is of."""

from windlass.shared.concerns import Concern
from windlass.shared.db import Database
from windlass.shared.features.transactions import Session, transaction

BIT = Concern.WEBHOOK.value


async def listen(db: Session) -> None:
    """Call it in the transaction that creates or changes a subscription, before the subscription is written. It locks
    the row, also if the bit is set, so `unset` either sees the subscription or runs before it. A move that begins after
    the commit sees the bit. One that began earlier happened before the endpoint existed."""
    await db.execute(
        """
        INSERT INTO global_subscriptions AS g (is_only, bits) VALUES (true, $1)
        ON CONFLICT (is_only) DO UPDATE SET bits = g.bits | excluded.bits WHERE g.bits & $1 = 0
        """,
        BIT,
    )


async def unset_if_unused(db: Database) -> None:
    """When no endpoint subscribes to anything, moves need not be written."""
    is_unused = """
        SELECT NOT EXISTS (SELECT 1 FROM webhooks WHERE listens)
           AND EXISTS (SELECT 1 FROM global_subscriptions WHERE bits & $1 <> 0)
    """
    if await db.fetchval(is_unused, BIT):
        async with transaction(db) as session:
            await unset(session)


async def unset(db: Session) -> None:
    """Locks the row, then looks. A subscription that is created at the same time waits, and sets the bit again."""
    await db.execute("SELECT 1 FROM global_subscriptions WHERE is_only = true FOR NO KEY UPDATE")
    await db.execute(
        """
        UPDATE global_subscriptions SET bits = bits & ~$1::int
        WHERE NOT EXISTS (SELECT 1 FROM webhooks WHERE listens)
        """,
        BIT,
    )
