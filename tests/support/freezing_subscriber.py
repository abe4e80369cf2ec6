"""Handles the moves of one task of memory, and freezes itself before a certain call to Postgres."""

import asyncio
import os
import signal
import sys
from typing import Any
from uuid import UUID

import asyncpg

from windlass.shared import db
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.memory.subscriber import MEMORY
from windlass.shared.settings import Settings


def freeze_before(place: int) -> None:
    """Before the call of this number, counted from the beginning of the transaction."""
    calls = 0

    def counted(name: str) -> None:
        original = getattr(asyncpg.Connection, name)

        async def call(self: asyncpg.Connection, statement: str, *arguments: Any, **options: Any) -> Any:
            nonlocal calls
            if calls or statement.startswith("BEGIN"):
                calls += 1
                if calls == place:
                    os.kill(os.getpid(), signal.SIGSTOP)
            return await original(self, statement, *arguments, **options)

        setattr(asyncpg.Connection, name, call)

    for name in ("execute", "executemany", "fetch"):
        counted(name)


async def main(subject: UUID, place: int) -> None:
    pool = await db.open_feature_pool(Settings(), "orchestrator", most=1)
    freeze_before(place)
    try:
        await handle_pending(pool, MEMORY, [subject])
    finally:
        pool.terminate()


if __name__ == "__main__":
    asyncio.run(main(UUID(sys.argv[1]), int(sys.argv[2])))
