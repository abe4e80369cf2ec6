"""Orchestrators harmed in the middle of a batch: between the first row that a subscriber writes and its commit."""

import asyncio
from collections.abc import Callable

import asyncpg

from tests.chaos.memory.ledger import CLOSE_THE_GATE, IS_IN_A_BATCH

CALL_SECONDS = 3.0
BATCH_SECONDS = 15.0
"""If the orchestrator gets no batch for so long, it is harmed between two of them."""
LOOK_SECONDS = 0.02


def in_a_batch(database_url: str, unit: str, harm: Callable[[], object]) -> bool:
    """Whether it was in a batch. `harm` kills or freezes the process, and returns at once."""
    return asyncio.run(_in_a_batch(database_url, unit, harm))


async def _in_a_batch(database_url: str, unit: str, harm: Callable[[], object]) -> bool:
    connection = None
    try:
        connection = await asyncpg.connect(database_url, timeout=CALL_SECONDS, command_timeout=CALL_SECONDS)
        await connection.fetch(CLOSE_THE_GATE, unit)
        return await _is_in_one(connection)
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
        return False  # another fault harms Postgres just now
    finally:
        harm()
        if connection is not None:
            connection.terminate()


async def _is_in_one(connection: asyncpg.Connection) -> bool:
    for _ in range(round(BATCH_SECONDS / LOOK_SECONDS)):
        if await connection.fetchval(IS_IN_A_BATCH):
            return True
        await asyncio.sleep(LOOK_SECONDS)
    return False
