"""Transactions of several calls, on a pool or within another transaction."""

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import asyncpg

from windlass.shared.db import Database
from windlass.shared.features.handling import REPEATED

Answer = TypeVar("Answer")

Session = asyncpg.Connection | asyncpg.pool.PoolConnectionProxy
"""A connection that is in a transaction."""

TRIES = 20
"""How often a transaction is repeated after a deadlock or a lock timeout, if it is the outermost one."""


@asynccontextmanager
async def transaction(db: Database) -> AsyncIterator[Session]:
    """Of a pool, on a connection of its own; a connection's own transaction, or a savepoint in it."""
    if isinstance(db, asyncpg.Pool):
        async with db.acquire() as connection, connection.transaction():
            yield connection
    else:
        async with db.transaction():
            yield db


async def repeatedly(db: Database, act: Callable[[Session], Awaitable[Answer]]) -> Answer:
    """Acts in a transaction. A lock timeout or a deadlock repeats all of it: another process may be frozen, and keep
    its locks for two seconds."""
    for tries_left in reversed(range(TRIES)):
        try:
            async with transaction(db) as session:
                return await act(session)
        except REPEATED:
            if not tries_left or not isinstance(db, asyncpg.Pool):
                raise
    raise AssertionError("the last try returns or raises")


async def call_all(db: Database, calls: Sequence[tuple[str, Sequence[object]]]) -> list[Any]:
    """Calls functions one after the other, in one statement."""
    values: list[object] = []
    texts = []
    for text, its_values in calls:
        places = range(len(values) + 1, len(values) + len(its_values) + 1)
        texts.append(text.format(*(f"${place}" for place in places)))
        values += its_values
    # A name for each: asyncpg's rows find columns by their names.
    row = await db.fetchrow("SELECT " + ", ".join(f"{text} AS c{number}" for number, text in enumerate(texts)), *values)
    return list(row or ())
