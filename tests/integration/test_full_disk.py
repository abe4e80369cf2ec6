"""Postgres on a disk that is really full: it answers, refuses what is to be stored, and everybody is told why."""

import asyncio
import os
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Any

import asyncpg
import pytest

from tests.support.engine.store import Engine, an_engine
from tests.support.servers.databases import migrate
from tests.support.servers.restartable_servers import postgres_on_a_small_disk
from windlass.services.api.operators.health import look_at_components
from windlass.services.api.operators.room import Room
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.operating import cluster_state, room

DISK_MEGABYTES = 128

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a disk of its own")


@pytest.fixture(scope="module")
def small_url() -> Iterator[str]:
    if subprocess.run(["unshare", "--mount", "true"], capture_output=True, check=False).returncode != 0:
        pytest.skip("nobody can mount a disk of one's own here: a chroot's root is no mount that could be kept private")
    with postgres_on_a_small_disk(DISK_MEGABYTES) as server:
        migrate(server.url)
        yield server.url


async def fill_the_disk(engine: Engine) -> None:
    """But for the log, which has a new segment to write to: without one Postgres would not refuse, but end."""
    await engine.sql("SELECT pg_switch_wal()")
    await engine.sql(
        "CREATE UNLOGGED TABLE ballast (weight text); ALTER TABLE ballast ALTER weight SET STORAGE EXTERNAL"
    )
    for kilobytes in (1000, 100, 8):
        await until_refused(partial(engine.sql, f"INSERT INTO ballast VALUES (repeat('x', {kilobytes} * 1000))"))


async def until_refused(write: Callable[[], Awaitable[object]]) -> BaseException:
    """Again and again, until there is no room for it."""
    try:
        while True:
            await write()
    except asyncpg.DiskFullError as error:
        return error


async def components(engine: Engine) -> dict[str, Any]:
    return await look_at_components(engine.pool, Room(engine.pool), Settings())


@needs_root
def test_a_full_disk_is_told_of_for_as_long_as_it_is_full(small_url: str) -> None:
    async def story() -> None:
        async with an_engine(small_url) as engine:
            assert (await components(engine))["postgres"]["status"] == "healthy"
            await fill_the_disk(engine)
            # The table may have gaps for a few more.
            refused = await until_refused(partial(engine.submit_many, 100, payload={"result": "x" * 1000}))
            assert db.refused_to_store(refused) == "its disk is full"
            postgres = (await components(engine))["postgres"]
            assert postgres["status"] == "degraded"
            assert postgres["detail"].startswith("its disk is full")
            read = await cluster_state.read(engine.pool, workers_within_seconds=30, janitors_within_seconds=30)
            assert read.refusal == "disk-full"
            await engine.sql("DROP TABLE ballast")
            assert (await components(engine))["postgres"]["status"] == "healthy"
            await engine.submit()

    asyncio.run(story())


def test_a_server_that_may_only_be_read_says_so(database_url: str) -> None:
    async def story() -> None:
        async with an_engine(database_url) as engine:
            name = database_url.rpartition("/")[2]
            await engine.sql(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
            await engine.pool.expire_connections()
            assert await room.refusal(engine.pool) == "read-only"
            with pytest.raises(asyncpg.ReadOnlySQLTransactionError) as refused:
                await engine.submit()
            assert db.refused_to_store(refused.value) == "it is read-only"
            assert (await components(engine))["postgres"]["status"] == "degraded"

    asyncio.run(story())
