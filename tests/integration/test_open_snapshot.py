"""While somebody keeps a snapshot open nothing that has gone is walked over at each call, and nobody is forgotten."""

import asyncio
import random
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from tests.support.engine.dispatching import HEARD_WITHIN, ask_next
from tests.support.engine.store import RULES, Engine, an_ending, an_engine
from windlass.shared.admission import ProviderView
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import providers
from windlass.shared.store.functions import named
from windlass.shared.store.operating import workers
from windlass.shared.store.tasks import Claimed

GONE = 2500
LIMIT = 50
FEW = 1500
"""Entries: more than are walked over before it counts as many, and far fewer than have gone."""

PATIENCE = 60

ENTRIES = """
SELECT coalesce(sum(pg_stat_get_xact_tuples_returned(indexrelid)), 0)::bigint FROM pg_index
WHERE indrelid = 'tasks'::regclass
"""
REMEMBER_EVERYTHING = f"CREATE OR REPLACE FUNCTION {named('walked_over_many')}() RETURNS int LANGUAGE sql IMMUTABLE"
COUNTED = {
    "running_at": "SELECT count(*) FROM tasks WHERE status = 'running' AND provider = $1",
    "running_by": "SELECT count(*) FROM tasks WHERE status = 'running' AND worker_id = $1",
}


@asynccontextmanager
async def an_open_snapshot(engine: Engine) -> AsyncIterator[None]:
    connection = await asyncpg.connect(engine.database_url)
    try:
        await connection.execute("SET idle_in_transaction_session_timeout = 0")
        async with connection.transaction(isolation="repeatable_read"):
            await connection.fetchval("SELECT count(*) FROM tasks")
            yield
    finally:
        await connection.close()


async def end(connection: Any, attempts: list[Claimed]) -> None:
    ends = await tasks.end(connection, [an_ending(each, "complete") for each in attempts], RULES)
    assert set(ends) <= {"completed"}


async def pass_through(engine: Engine, number: int) -> None:
    await engine.submit_many(number)
    await end(engine.pool, (await ask_next(engine, number)).claimed)


async def see(connection: Any) -> ProviderView:
    (view,) = await providers.look(connection, heard_within_seconds=HEARD_WITHIN, only=["probe"])
    return view


def short(walks: list[int]) -> bool:
    """Whether one of them has left out what has gone."""
    return min(walks) < FEW


async def entries_read(connection: Any, call: Callable[[], Coroutine[Any, Any, Any]]) -> int:
    """Of all indexes of tasks. What was read before it may not have been handed on yet: so it is taken twice."""
    async with connection.transaction():
        before: int = await connection.fetchval(ENTRIES)
        await call()
        after: int = await connection.fetchval(ENTRIES)
    return after - before


@pytest.mark.parametrize("limit", [None, LIMIT])
def test_what_has_gone_is_not_walked_over_at_each_call(database_url: str, limit: int | None) -> None:
    async def walk() -> None:
        async with an_engine(database_url) as engine, an_open_snapshot(engine):
            await workers.register(engine.pool, "worker-1", hostname="h", pid=1, queues=["probe.probe"], capacity=9)
            await pass_through(engine, GONE)
            await engine.provide("probe", limit=limit)
            async with engine.pool.acquire() as connection:
                looks: list[int] = []
                claims: list[int] = []
                # Now and then one begins at the beginning; if the machine is busy, all do whose turn comes so late.
                until = time.monotonic() + PATIENCE
                while len(looks) < 6 or (time.monotonic() < until and not (short(looks) and short(claims))):
                    await engine.submit_many(6)
                    looks.append(await entries_read(connection, lambda: see(connection)))
                    claims.append(await entries_read(connection, lambda: claim(engine, connection)))
            assert max(looks) > GONE, "they are there to be walked over"
            assert short(looks), looks
            assert short(claims), claims

    async def claim(engine: Engine, connection: Any) -> None:
        answer = await ask_next(engine, 5, connection=connection)
        assert len(answer.claimed) == 5
        await end(connection, answer.claimed)

    asyncio.run(walk())


@asynccontextmanager
async def remembering(database_url: str) -> AsyncIterator[tuple[Engine, Any]]:
    """An engine that remembers floors however little it has walked over, and a connection that has just done so."""
    async with an_engine(database_url) as engine:
        await engine.sql(f"{REMEMBER_EVERYTHING} AS 'SELECT -1'")
        await engine.submit_many(3)
        async with engine.pool.acquire() as connection:
            await ask_next(engine, 2, connection=connection)
            yield engine, connection


async def move_backwards(engine: Engine, task_id: UUID) -> None:
    await engine.sql("UPDATE tasks SET available_at = now() - interval '1 h' WHERE task_id = $1", task_id)


def test_who_moves_backwards_is_found_although_others_are_always_there(database_url: str) -> None:
    async def run() -> None:
        async with remembering(database_url) as (engine, connection):
            moved = await engine.submit()
            await move_backwards(engine, moved)
            found: list[UUID] = []
            async with asyncio.timeout(PATIENCE):
                while moved not in found:
                    await engine.submit_many(2)
                    found += [each.task_id for each in (await ask_next(engine, 1, connection=connection)).claimed]
            floors = await connection.fetchval("SELECT current_setting('windlass.floors')")
            assert "probe.probe" in floors

    asyncio.run(run())


def test_who_moves_backwards_is_found_at_once_where_nobody_else_is(database_url: str) -> None:
    async def run() -> None:
        async with remembering(database_url) as (engine, connection):
            await ask_next(engine, 9, connection=connection)
            moved = await engine.submit()
            await move_backwards(engine, moved)
            assert [each.task_id for each in (await ask_next(engine, 9, connection=connection)).claimed] == [moved]

    asyncio.run(run())


def test_a_look_that_may_have_missed_somebody_says_when_to_look_again(database_url: str) -> None:
    async def run() -> None:
        async with remembering(database_url) as (engine, connection):
            await ask_next(engine, 9, connection=connection)
            await move_backwards(engine, await engine.submit())
            view = await see(connection)
            async with asyncio.timeout(PATIENCE):
                while view.fresh_due == 0:
                    assert view.next_at is not None
                    assert (view.next_at - view.at).total_seconds() <= 1
                    await asyncio.sleep((view.next_at - view.at).total_seconds())
                    view = await see(connection)
            assert view.next_at is None, "it has begun at the beginning, and need not be repeated"

    asyncio.run(run())


class Claimants:
    """Four that claim and end over connections of their own, each now and then in a transaction that stays open."""

    def __init__(self, engine: Engine, connections: list[Any], dice: random.Random) -> None:
        self.engine = engine
        self.connections = connections
        self.dice = dice
        self.under_way: dict[Any, Any] = {}
        self.running: list[Claimed] = []

    async def begin(self, connection: Any) -> None:
        if connection not in self.under_way:
            self.under_way[connection] = connection.transaction()
            await self.under_way[connection].start()

    async def commit(self, connection: Any) -> None:
        if connection in self.under_way:
            await self.under_way.pop(connection).commit()

    async def claim(self, connection: Any) -> None:
        worker = f"worker-{self.connections.index(connection)}"
        number = self.dice.randint(1, 3)
        self.running += (await ask_next(self.engine, number, worker=worker, connection=connection)).claimed

    async def end(self, connection: Any) -> None:
        if self.running and not self.under_way:  # else it may be one that nobody else sees yet
            await end(connection, [self.running.pop(self.dice.randrange(len(self.running)))])

    async def count(self, connection: Any) -> None:
        for function, names in (("running_at", ["probe"]), ("running_by", [f"worker-{n}" for n in range(4)])):
            for name in names:
                believed, counted = await connection.fetchrow(
                    f"SELECT {named(function)}($1), ({COUNTED[function]})",
                    name,
                )
                assert believed == counted


@pytest.mark.parametrize("seed", range(3))
def test_what_runs_is_counted_exactly_whatever_is_under_way(database_url: str, seed: int) -> None:
    """By connections that remember at every count, while others claim and end and have not committed yet."""
    dice = random.Random(seed)

    async def run() -> None:
        async with remembering(database_url) as (engine, _), AsyncExitStack() as stack:
            connections = [await stack.enter_async_context(engine.pool.acquire()) for _ in range(4)]
            each = Claimants(engine, connections, dice)
            steps = [each.claim, each.end, each.begin, each.commit, each.count, each.count]
            await engine.submit_many(150)
            for _ in range(150):
                connection = dice.choice(connections)
                await dice.choice(steps)(connection)

    asyncio.run(run())
