"""Connections cut at the worst moments of a call that ends attempts and asks for the next.

Before its commit; in it, when the server goes on and its client has gone; after it, when only the answer is lost; and
one that comes late, when its worker has recalled it already by another connection.
"""

import asyncio
import os
import signal
from collections.abc import Sequence
from contextlib import suppress

import asyncpg

from tests.chaos.site.network import Link

BEFORE, WITHIN, AFTER, LATE = (
    "cut an end before its commit",
    "cut an end in it",
    "cut an end after it",
    "an end is late",
)

TAKE_TURNS = """
SELECT pg_advisory_lock(hashtext('windlass turns'), hashtext(worker_id)) FROM workers
WHERE state = 'active' AND pid = ANY ($1::int[])
"""
"""As the calls themselves do it: those of these workers wait at their beginning from now on."""
WAITING = """
SELECT pid FROM pg_stat_activity WHERE application_name LIKE 'windlass-actors-writer %'
  AND wait_event = 'advisory' AND query LIKE '%end_and_next%' LIMIT 1
"""
AT_WORK = "SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND state = 'active'"

WAIT_SECONDS = 3.0
LATE_SECONDS = 1.0
AWAY_SECONDS = 60.0


def cut_an_end(database_url: str, workers: Sequence[int], link: Link, moment: str) -> None:
    """Of one of these workers, whose way to Postgres the link is. Nothing happens if none ends anything just then."""

    async def cut() -> None:
        async with asyncio.timeout(AWAY_SECONDS):
            while True:
                with suppress(OSError, asyncpg.PostgresError, asyncpg.InterfaceError):
                    return await _cut(database_url, workers, link, moment)
                await asyncio.sleep(0.3)

    asyncio.run(cut())


async def _cut(database_url: str, workers: Sequence[int], link: Link, moment: str) -> None:
    connection = await asyncpg.connect(database_url, timeout=WAIT_SECONDS, command_timeout=WAIT_SECONDS)
    try:
        await connection.fetch(TAKE_TURNS, list(workers))
        backend = await _one_that_waits(connection)
        if backend is None:
            return
        if moment == BEFORE:
            await connection.execute("SELECT pg_terminate_backend($1)", backend)
        elif moment == WITHIN:
            link.reset()
        elif moment == AFTER:
            link.freeze()
        await connection.execute("SELECT pg_advisory_unlock_all()")
        if moment in {AFTER, LATE}:
            await _until_it_is_done(connection, backend)
        if moment == AFTER:
            link.reset()
        elif moment == LATE:
            await _come_late(backend, link)
    finally:
        if moment == AFTER:
            link.mend()
        connection.terminate()


async def _one_that_waits(connection: asyncpg.Connection) -> int | None:
    for _ in range(round(WAIT_SECONDS / 0.02)):
        if backend := await connection.fetchval(WAITING):
            return int(backend)
        await asyncio.sleep(0.02)
    return None


async def _until_it_is_done(connection: asyncpg.Connection, backend: int) -> None:
    for _ in range(round(WAIT_SECONDS / 0.02)):
        if not await connection.fetchval(AT_WORK, backend):
            return
        await asyncio.sleep(0.02)


async def _come_late(backend: int, link: Link) -> None:
    """What its worker says next is not heard before that one has lost patience, and asked what became of it."""
    with suppress(ProcessLookupError):
        os.kill(backend, signal.SIGSTOP)
        try:
            await asyncio.sleep(LATE_SECONDS)
            link.reset()
            await asyncio.sleep(LATE_SECONDS)
        finally:
            os.kill(backend, signal.SIGCONT)
