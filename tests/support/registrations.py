"""Registrations of actors, written as `windlass actors register` writes them, without any code of the actors."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

from windlass.shared import db
from windlass.shared.actors.definition import Definition
from windlass.shared.settings import Settings
from windlass.shared.store.operating import registry


def own_actor(name: str) -> Definition:
    return Definition(name=name, module="ours", provider=name, payload_schema={"type": "object"})


def register(database_url: str, *definitions: Definition) -> None:
    """On a thread of its own: that of a browser test has a loop that runs."""

    async def run() -> None:
        pool = await db.open_pool(Settings(database_url=database_url), "tests", most=1)
        try:
            await registry.register(pool, definitions)
        finally:
            await pool.close()

    with ThreadPoolExecutor(1) as apart:
        apart.submit(lambda: asyncio.run(run())).result()
