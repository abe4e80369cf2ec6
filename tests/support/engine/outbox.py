"""Outbox rows of a test's own feature, and relays that handle them."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from uuid import UUID, uuid4

from tests.support.engine.store import Engine
from windlass.services.orchestrator.relay import Relay
from windlass.shared import db
from windlass.shared.features.feature import Feature
from windlass.shared.settings import Settings
from windlass.shared.store import outbox
from windlass.shared.store.outbox import Move

WRITE = """
INSERT INTO outbox (feature, subject, task_id, life, seq, move, status)
SELECT $1, $2, $2, 1, seq, 'complete', 'completed' FROM generate_series($3::int, $3::int + $4::int - 1) AS seq
"""


class Ledger:
    """A feature that writes down what it handled, in its transaction. It refuses the subjects in `refused`."""

    def __init__(self, name: str = "test", *, subjects_at_once: int = 1) -> None:
        self.feature = Feature(name, self.handle, subjects_at_once=subjects_at_once)
        self.refused: set[UUID] = set()

    async def handle(self, connection: db.Database, moves: Sequence[Move]) -> None:
        await connection.executemany(
            "INSERT INTO ledger (subject, seq) VALUES ($1, $2)", [(move.subject, move.seq) for move in moves]
        )
        if self.refused.intersection(move.subject for move in moves):
            raise ValueError("refused")

    async def write(
        self, engine: Engine, subject: UUID | None = None, *, first: int = 1, number: int = 1, wakes: bool = True
    ) -> UUID:
        subject = subject or uuid4()
        await engine.sql(WRITE, self.feature.name, subject, first, number)
        if wakes:
            await engine.sql(f"NOTIFY {outbox.CHANNEL}")
        return subject


async def with_a_ledger(engine: Engine) -> None:
    await engine.sql("DROP TABLE IF EXISTS ledger")
    await engine.sql("CREATE TABLE ledger (place bigint GENERATED ALWAYS AS IDENTITY, subject uuid, seq int)")


async def handled(engine: Engine, subject: UUID | None = None) -> list[int]:
    rows = await engine.pool.fetch(
        "SELECT seq FROM ledger WHERE $1::uuid IS NULL OR subject = $1 ORDER BY place", subject
    )
    return [row["seq"] for row in rows]


async def pending(engine: Engine) -> int:
    number: int = await engine.pool.fetchval("SELECT count(*) FROM outbox")
    return number


@asynccontextmanager
async def relays(engine: Engine, *features: Feature, number: int = 1) -> AsyncIterator[None]:
    """Orchestrators, as far as they relay."""
    settings = Settings(database_url=engine.database_url)
    pools = [await db.open_feature_pool(settings, "orchestrator", most=5) for _ in range(number)]
    running = []
    for pool in pools:
        relay = Relay(pool, features)
        listener = db.Listener(settings, "orchestrator", {outbox.CHANNEL: relay.wake})
        running += [asyncio.create_task(relay.run()), asyncio.create_task(listener.run())]
    try:
        yield
        assert not [task for task in running if task.done()]
    finally:
        for task in running:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
        for pool in pools:
            await pool.close()
