"""Drives two moves against each other, several times each at once, and sees that nobody waits for ever."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import asyncpg
from sqlmodel import SQLModel

from tests.support.engine.keyed import set_key_limit
from tests.support.engine.locks.moves import GATES, MOVES
from tests.support.engine.locks.yard import KEY_LIMITS, PROVIDERS, Yard
from tests.support.engine.store import Engine
from tests.support.engine.webhooks import ready
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.tasks.submitting import KeyInFlight, WorkflowCancelled

AT_ONCE = 4
"""Of each of the two moves."""

MEETINGS_OF_A_CROWD = 3
"""Then there is a new one: of the old one too many have ended."""

IN_A_HURRY = "deadlock_timeout=10ms&synchronous_commit=off"
"""A circle is found soon, and nothing has to outlive the test; the tests' Postgres lets us say so."""

STANDING_AT = {
    "tasks": "SELECT 1 FROM tasks WHERE task_id = $1::text::uuid FOR NO KEY UPDATE",
    "providers": "SELECT 1 FROM providers WHERE name = $1 FOR NO KEY UPDATE",
    "schedules": "SELECT 1 FROM schedules WHERE schedule_id::text = $1 FOR NO KEY UPDATE",
    "projects": "SELECT 1 FROM projects WHERE project_id::text = $1 FOR NO KEY UPDATE",
    "workflows": "SELECT 1 FROM workflows WHERE workflow_id::text = $1 FOR NO KEY UPDATE",
    "webhooks": "SELECT 1 FROM webhooks WHERE webhook_id::text = $1 FOR NO KEY UPDATE",
    "workers": "SELECT 1 FROM workers WHERE worker_id = $1 FOR NO KEY UPDATE",
    "generations": "SELECT 1 FROM generations WHERE generation_id::text = $1 FOR NO KEY UPDATE",
}
"""Where somebody stands in the way while the moves begin: they gather there, with what they have locked before. Two
that go opposite ways then meet nearly always, and not once in a hundred times."""

WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND application_name LIKE 'windlass-drill %' AND wait_event_type = 'Lock'
"""


class Drill:
    """A yard, a gatekeeper, and somebody who watches."""

    def __init__(self, engine: Engine, gatekeeper: asyncpg.Connection, watcher: asyncpg.Connection) -> None:
        self._engine = engine
        self._gatekeeper = gatekeeper
        self._watcher = watcher

    async def begin(self, seed: str) -> None:
        """An empty yard."""
        await self._gatekeeper.execute("; ".join(f"DELETE FROM {table}" for table in SQLModel.metadata.tables))
        for name, limit in PROVIDERS.items():
            await self._engine.provide(name, limit=limit)
        await set_key_limit(self._engine, KEY_LIMITS[0])
        await ready(self._engine)
        self.yard = Yard(self._engine, random.Random(seed))
        self._meetings = 0

    async def meet(self, one: str, other: str) -> None:
        """Both moves at once on one crowd, each several times; what goes wrong is raised."""
        if self._meetings % MEETINGS_OF_A_CROWD == 0:
            await self.yard.gather()
        self._meetings += 1
        async with self._gatekeeper.transaction():
            await self._gatekeeper.execute(*self._gate(one, other))
            calls = [asyncio.create_task(self._do(name)) for name in [one, other] * AT_ONCE]
            await self._until_held_up(calls)
        done = await asyncio.gather(*calls, return_exceptions=True)
        for error in done:
            if isinstance(error, BaseException):
                error.add_note(f"when {one} met {other}")
                raise error

    async def _do(self, name: str) -> None:
        # The answers to who waits too long for a key that somebody else is taking, and to who comes too late.
        with suppress(KeyInFlight, WorkflowCancelled):
            await MOVES[name](self.yard)

    def _gate(self, *names: str) -> tuple[str, str]:
        yard = self.yard
        kind = yard.chance.choice(["tasks", *(GATES.get(name, "tasks") for name in names)])
        orders = [str(generation_id) for _, generation_id in yard.orders] or [""]
        rows = {
            "tasks": str(yard.one()),
            "providers": yard.provider(),
            "schedules": str(yard.schedule().schedule_id),
            "projects": str(yard.project().project_id),
            "workflows": str(yard.flow().workflow_id),
            "webhooks": str(yard.hook().webhook_id),
            "workers": yard.worker(),
            "generations": orders[-1],
        }
        return STANDING_AT[kind], rows[kind]

    async def _until_held_up(self, calls: list[asyncio.Task[None]]) -> None:
        """Until each has come to its end or waits for a lock."""
        while True:
            under_way = sum(not call.done() for call in calls)
            if under_way == 0 or await self._watcher.fetchval(WAITING) >= under_way:
                return
            await asyncio.sleep(0)


@asynccontextmanager
async def a_drill(database_url: str) -> AsyncIterator[Drill]:
    url = f"{database_url}?{IN_A_HURRY}"
    pool = await db.open_pool(Settings(database_url=url), "drill", most=2 * AT_ONCE)
    gatekeeper, watcher = await asyncpg.connect(url), await asyncpg.connect(url)
    try:
        yield Drill(Engine(database_url, pool), gatekeeper, watcher)
    finally:
        await gatekeeper.close()
        await watcher.close()
        await pool.close()
