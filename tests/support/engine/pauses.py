"""A moment in the middle of a statement at which whoever comes there waits, for as long as a test wants it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.support.engine.store import Engine

PAUSE = """
CREATE FUNCTION public.pause() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_xact_lock(42);
    RETURN NEW;
END $$;
CREATE TRIGGER pause {when} EXECUTE FUNCTION public.pause();
"""
NO_MORE = "DROP FUNCTION public.pause CASCADE"
KILL = """
SELECT pg_terminate_backend(l.pid) FROM pg_locks l JOIN pg_database d ON d.oid = l.database
WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database()
"""
HOLD = "SELECT pg_advisory_xact_lock($1)"


@asynccontextmanager
async def paused(engine: Engine, when: str) -> AsyncIterator[None]:
    """`when` is a trigger's; the block goes on beside whoever waits there, and lets them go when it is left."""
    await engine.sql(PAUSE.format(when=when))
    try:
        async with engine.holding(HOLD, 42):
            yield
    finally:
        await engine.sql(NO_MORE)


async def kill_who_waits(engine: Engine) -> None:
    """As if its process had died there."""
    await engine.sql(KILL)
