"""Concurrency keys, when something is in the way: lost calls, faults, other limits."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from tests.support.engine.dispatching import start_next
from tests.support.engine.flow import serve
from tests.support.engine.keyed import parked, set_key_limit, with_key
from tests.support.engine.rated import claim_together
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.janitor.duties.keys import AGAIN_SECONDS, recheck_keys
from windlass.services.janitor.rhythms import UNTIL_CALLED
from windlass.shared.holds import Hold
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import keys
from windlass.shared.store.functions import named

A = with_key("a")


def limited(limit: int | None) -> Settings:
    concurrency = {} if limit is None else {"concurrency": {"key": "/account", "limit": limit}}
    return Settings(actors={"probe": concurrency})


async def recheck(engine: Engine, *called_by: str) -> float:
    return await recheck_keys(engine.pool, called_by)


@on_the_engine
async def test_the_janitor_lets_go_on_what_an_end_has_left(engine: Engine) -> None:
    await set_key_limit(engine, 1)
    attempts = [await engine.running(**with_key(key)) for key in "abc"]
    ids = [each for key in "abc" for each in await engine.submit_many(2, **with_key(key))]
    await claim_together(engine, ids)
    await engine.sql("UPDATE tasks SET concerns = 0")  # as if nobody had been told
    for attempt in attempts[:2]:
        await engine.finish(attempt, concerns=0)
    assert await parked(engine, ids) == ids
    assert await recheck(engine) == UNTIL_CALLED
    assert await parked(engine, ids) == [ids[1], *ids[3:]]
    await recheck(engine)
    assert await parked(engine, ids) == [ids[1], *ids[3:]]


@on_the_engine
async def test_pages_of_keys_are_looked_through_to_the_end(engine: Engine) -> None:
    await set_key_limit(engine, 1)
    names = [f"key {number:03}" for number in range(7)]
    ids = [await engine.submit(**with_key(name)) for name in names]
    await tasks.hold(engine.pool, ids, Hold.KEY)
    seen, after = [], None
    while True:
        row = await engine.pool.fetchrow(f"SELECT * FROM {named('recheck_keys')}(NULL, $1, 3, 500)", after)
        assert row is not None
        seen.append(row["released"])
        after = row["reached"]
        if after is None:
            break
    assert seen == [3, 3, 1]
    assert await parked(engine, ids) == []


@on_the_engine
async def test_who_cannot_lock_the_provider_calls_the_janitor_by_its_name(engine: Engine) -> None:
    await set_key_limit(engine, 1)
    attempt = await engine.running(**A)
    ids = await engine.submit_many(1, **A)
    await claim_together(engine, ids)
    async with engine.listening(keys.CHANNEL) as calls, engine.holding("SELECT * FROM providers FOR NO KEY UPDATE"):
        await engine.finish(attempt, concerns=0)
    assert calls == ["probe"]
    assert await parked(engine, ids) == ids
    await recheck(engine, "probe")
    assert await parked(engine, ids) == []


@on_the_engine
async def test_a_parked_task_that_somebody_has_locked_keeps_its_turn(engine: Engine) -> None:
    await set_key_limit(engine, 1)
    attempt = await engine.running(**A)
    ids = await engine.submit_many(2, **A)
    await claim_together(engine, ids)
    locked = "SELECT * FROM tasks WHERE task_id = $1 FOR UPDATE"
    async with engine.listening(keys.CHANNEL) as calls, engine.holding(locked, ids[0]):
        await engine.finish(attempt)
        assert await recheck(engine) == AGAIN_SECONDS
    assert calls == ["probe"]
    await recheck(engine)
    assert await parked(engine, ids) == ids[1:]


@on_the_engine
async def test_a_limit_is_raised_lowered_and_taken_away(engine: Engine) -> None:
    await keys.configure(engine.pool, limited(1))
    attempts = [await engine.running(**A)]
    ids = await engine.submit_many(6, **A)
    await claim_together(engine, ids)
    async with engine.listening(keys.CHANNEL) as calls:
        await keys.configure(engine.pool, limited(3))
        await keys.configure(engine.pool, limited(3))
    assert calls == [""], "once, and only when it has changed"
    await recheck(engine)
    assert await parked(engine, ids) == ids[2:]
    attempts += await claim_together(engine, ids[:2])
    await keys.configure(engine.pool, limited(1))
    for attempt in attempts[:2]:
        await engine.finish(attempt)
        assert await parked(engine, ids) == ids[2:], "as long as more run than may"
    await engine.finish(attempts[2])
    assert await parked(engine, ids) == ids[3:]
    await keys.configure(engine.pool, limited(None))
    await recheck(engine)
    assert await parked(engine, ids) == []
    assert len(await claim_together(engine, ids[2:])) == 4


@pytest.mark.parametrize("move", ["cancel", "end", "stall", "expire"])
@on_the_engine
async def test_nobody_is_waited_for_with_a_parked_task_in_hand(engine: Engine, move: str) -> None:
    """Somebody has locked a dependent and wants the parked one next: the dependents come first, then the key."""
    await set_key_limit(engine, 1)
    parent = await engine.submit(**A, max_retries=0, max_age_seconds=3600)
    child, next_one = await engine.submit(depends_on=[parent]), await engine.submit(**A)
    attempt = await engine.start(parent)
    await engine.claim(next_one)
    if move in {"cancel", "expire"}:
        await engine.finish(attempt, "interrupt")
    moves: dict[str, Callable[[], Awaitable[object]]] = {
        "cancel": lambda: engine.cancel(parent),
        "end": lambda: engine.finish(attempt),
        "stall": lambda: tasks.stall(engine.pool),
        "expire": lambda: tasks.expire(engine.pool),
    }
    if move == "stall":
        await engine.lapse(parent)
    if move == "expire":
        await engine.outlive(parent)
    assert await parked(engine, [next_one]) == [next_one]
    lock = "SELECT * FROM tasks WHERE task_id = $1 FOR UPDATE"
    async with engine.holding(lock, child) as somebody:
        moving = asyncio.ensure_future(moves[move]())
        await engine.until_waiting(1)
        await somebody.execute(lock, next_one)
    await moving
    await recheck(engine)
    assert await parked(engine, [next_one]) == []


@on_the_engine
async def test_a_claim_waits_for_nobody_though_it_parks(engine: Engine) -> None:
    await serve(engine)
    await set_key_limit(engine, 1)
    locked, first, surplus, free = (
        await engine.submit(), await engine.submit(**A), await engine.submit(**A), await engine.submit()
    )  # fmt: skip
    async with engine.holding("SELECT * FROM tasks WHERE task_id = $1 FOR UPDATE", locked), asyncio.timeout(60):
        assert [each.task_id for each in await start_next(engine)] == [first, free]
    assert await parked(engine, [first, surplus]) == [surplus]
    assert [each.task_id for each in await start_next(engine)] == [locked]
