"""Transactions of several calls, on a pool or within another transaction."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import asyncpg

from windlass.shared.db import Database

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
