"""Tasks with the same concurrency key: never more at once than the limit, whoever claims, and nobody else waits."""

import asyncio
import random
from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest
from uuid_utils.compat import uuid7

from tests.support.engine.dispatching import look, seconds_to_next_look, start_next
from tests.support.engine.flow import be_told_429, serve
from tests.support.engine.keyed import most_at_once, parked, set_key_limit, with_key
from tests.support.engine.one_order import intend_one
from tests.support.engine.rated import claim_together
from tests.support.engine.store import CONNECTIONS, Engine, on_the_engine
from windlass.services.api.access.auth import Caller
from windlass.services.api.tasks.why import explanation_of
from windlass.shared.holds import Hold
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings
from windlass.shared.store import orders, tasks
from windlass.shared.store.functions import named
from windlass.shared.store.order_steps import Intent
from windlass.shared.store.tasks import Claimed, Refused

A, B = with_key("a"), with_key("b")
ANN = Caller(key_id="k", user_id="ann", role="user")


@pytest.mark.parametrize("limit", [1, 2])
@on_the_engine
async def test_claims_on_many_connections_start_no_more_than_the_limit(engine: Engine, limit: int) -> None:
    await set_key_limit(engine, limit)
    ids = [each for key in ("a", "b", "c") for each in await engine.submit_many(8, **with_key(key))]
    as_many_as_may = [each for first in (0, 8, 16) for each in ids[first : first + limit]]
    chance = random.Random(limit)

    async def work(begun: Sequence[Claimed] = ()) -> None:
        for attempt in begun:
            await engine.finish(attempt)
        while waiting := await engine.pool.fetch("SELECT task_id FROM tasks WHERE status = 'queued' AND held = '{}'"):
            for attempt in await claim_together(engine, [chance.choice(waiting)["task_id"] for _ in range(3)]):
                await engine.finish(attempt)

    begun = await claim_together(engine, as_many_as_may)
    assert len(begun) == 3 * limit
    await asyncio.gather(work(begun), *(work() for _ in range(CONNECTIONS - 1)))
    assert await engine.count("status = 'completed'") == len(ids), "each end has let the next go on"
    assert await most_at_once(engine) == dict.fromkeys("abc", limit)


@on_the_engine
async def test_a_claim_parks_what_is_beyond_the_room_of_its_key(engine: Engine) -> None:
    await set_key_limit(engine, 2)
    ids = await engine.submit_many(4, **A)
    granted = await claim_together(engine, ids)
    assert [each.task_id for each in granted] == ids[:2]
    assert await parked(engine, ids) == ids[2:]
    assert await engine.claim(ids[2]) == Refused(ids[2], Reason.KEY_LIMIT)
    assert await engine.story(ids[2]) == ["submit", "hold"], "once is enough"
    other = await engine.submit(**A)
    assert await engine.claim(other) == Refused(other, Reason.KEY_LIMIT)
    assert await engine.finish(granted[0]) == "completed"
    assert await parked(engine, ids) == [ids[3]], "one place, one task"
    assert await engine.story(ids[2]) == ["submit", "hold", "release"]
    await engine.start(ids[2])


@on_the_engine
async def test_a_key_is_one_provider_s_and_one_actor_s_and_without_a_limit_nobody_s(engine: Engine) -> None:
    await engine.provide("other", limit=None)
    await engine.provide("several", limit=None, actors=["probe", "agent"])
    await set_key_limit(engine, 1)
    for fields in ({}, {"provider": "other"}, {"provider": "several"}, {"provider": "several", "actor": "agent"}):
        await engine.running(**A, **fields)
    await engine.running(**A, provider="several", actor="agent")
    await set_key_limit(engine, None)
    await engine.running(**A)


@pytest.mark.parametrize("how", ["given up", "failed"])
@on_the_engine
async def test_an_open_job_keeps_the_key_until_it_is_closed(engine: Engine, how: str) -> None:
    await set_key_limit(engine, 1)
    attempt = await engine.running(**A)
    order = uuid7()
    await intend_one(engine.pool, attempt, Intent(order, "draw", {}, uuid4().bytes.hex()))
    await orders.move(engine.pool, attempt, order, "place", job_id="j")
    waiting = await engine.submit(**A)
    assert await engine.claim(waiting) == Refused(waiting, Reason.KEY_LIMIT)
    await engine.finish(attempt, "retry")
    assert await parked(engine, [waiting, attempt.task_id]) == [waiting], "who has an open job is never parked"
    again = await engine.start(attempt.task_id)
    await engine.finish(again, "bury")
    assert await parked(engine, [waiting]) == [waiting]
    if how == "given up":
        await orders.give_up(engine.pool, order)
    else:
        await orders.move(engine.pool, None, order, "fail")
    assert await parked(engine, [waiting]) == []
    await engine.start(waiting)


@on_the_engine
async def test_a_claim_parks_what_has_no_room_and_starts_the_others(engine: Engine) -> None:
    """A hundred of one key stand in front, and do not keep the next one waiting."""
    await serve(engine)
    await set_key_limit(engine, 1)
    await engine.provide("probe", limit=2)
    crowd = await engine.submit_many(100, **A)
    free, plain = await engine.submit(**B), await engine.submit()
    first, second = await start_next(engine)
    assert [first.task_id, second.task_id] == [crowd[0], free]
    assert await parked(engine, crowd) == crowd[1:]
    await engine.finish(second)
    (third,) = await start_next(engine)
    assert third.task_id == plain
    await engine.finish(third)
    for each in crowd[1:5]:
        await engine.finish(first)
        (first,) = await start_next(engine)
        assert first.task_id == each


@on_the_engine
async def test_the_next_of_a_key_goes_by_priority_and_then_by_age(engine: Engine) -> None:
    await set_key_limit(engine, 1)
    attempt = await engine.running(**A)
    late, urgent, later = [await engine.submit(**A, priority=each) for each in (5, 0, 5)]
    await claim_together(engine, [later, late, urgent])
    started: list[UUID] = []
    for _ in range(3):
        await engine.finish(attempt)
        (row,) = await engine.pool.fetch("SELECT task_id FROM tasks WHERE status = 'queued' AND held = '{}'")
        attempt = await engine.start(row["task_id"])
        started.append(attempt.task_id)
    assert started == [urgent, late, later]


@on_the_engine
async def test_one_that_comes_back_at_once_goes_before_those_that_are_parked(engine: Engine) -> None:
    await set_key_limit(engine, 1)
    attempt = await engine.running(**A)
    (waiting,) = ids = await engine.submit_many(1, **A)
    await claim_together(engine, ids)
    await engine.finish(attempt, "interrupt")
    assert await parked(engine, ids) == [waiting]
    again = await engine.start(attempt.task_id)
    await engine.finish(again, "retry", delay_seconds=60)
    assert await parked(engine, ids) == [], "while one waits for its time, its key is free"


@pytest.mark.parametrize("end", ["complete", "retry", "bury", "stall", "cancel", "429"])
@on_the_engine
async def test_every_way_out_of_running_lets_the_next_go_on(engine: Engine, end: str) -> None:
    await set_key_limit(engine, 1)
    attempt = await engine.running(**A, max_retries=0)
    ids = await engine.submit_many(2, **A)
    await claim_together(engine, ids)
    assert await parked(engine, ids) == ids
    async with engine.listening("windlass_dispatch") as calls:
        if end == "stall":
            await engine.lapse(attempt.task_id)
            await tasks.stall(engine.pool)
        elif end == "cancel":
            await engine.cancel(attempt.task_id)
            await engine.finish(attempt, "interrupt")
        elif end == "429":
            await be_told_429(engine, attempt)
        else:
            await engine.finish(attempt, end, **({"delay_seconds": 60} if end == "retry" else {}))
    assert calls
    assert await parked(engine, ids) == ids[1:]


@on_the_engine
async def test_who_gives_its_turn_up_lets_the_next_go_on(engine: Engine) -> None:
    """Cancelled, grown too old or held by somebody else, before it has begun."""
    await set_key_limit(engine, 1)
    attempt = await engine.running(**A)
    ids = await engine.submit_many(5, **A, max_age_seconds=3600)
    await claim_together(engine, ids)
    await engine.finish(attempt)
    first, second, third, fourth, fifth = ids
    await engine.cancel(first)
    assert await parked(engine, ids) == [third, fourth, fifth]
    await engine.outlive(second)
    await tasks.expire(engine.pool)
    assert await parked(engine, ids) == [fourth, fifth]
    await tasks.hold(engine.pool, [third], Hold.WORKFLOW)
    assert await parked(engine, ids) == [fifth]
    await tasks.hold(engine.pool, [fifth], Hold.WORKFLOW)
    await engine.finish(await engine.start(fourth))
    assert (await engine.row(fifth)).held == ["key", "workflow"]
    await tasks.release(engine.pool, [fifth], Hold.WORKFLOW)
    assert await parked(engine, ids) == []
    await engine.start(fifth)


@on_the_engine
async def test_what_is_parked_is_cancelled_and_revived_and_grows_no_older(engine: Engine) -> None:
    await set_key_limit(engine, 1)
    attempt = await engine.running(**A)
    cancelled, waiting = ids = await engine.submit_many(2, **A, max_age_seconds=3600)
    await claim_together(engine, ids)
    assert await engine.cancel(cancelled) == "cancelled"
    assert await parked(engine, ids) == [waiting]
    await engine.outlive(waiting)
    await tasks.expire(engine.pool)
    assert await engine.status(waiting) == "queued"
    assert await engine.revive(cancelled) == "queued"
    assert await engine.claim(cancelled) == Refused(cancelled, Reason.KEY_LIMIT)
    await engine.sql("UPDATE tasks SET expires_at = now() + interval '1 hour' WHERE task_id = $1", waiting)
    await engine.finish(attempt)
    assert await parked(engine, ids) == [cancelled]


@on_the_engine
async def test_an_end_waits_for_who_is_just_parking_and_sees_it(engine: Engine) -> None:
    """Else the task would stay parked beside a key that nobody has."""
    await set_key_limit(engine, 1)
    attempt = await engine.running(**A)
    waiting = await engine.submit(**A)
    claim = f"SELECT * FROM {named('claim_tasks')}(ARRAY[$1::uuid], ARRAY[$2::uuid], 'worker-2', 30)"
    async with engine.holding(claim, waiting, uuid4()):
        ending = asyncio.create_task(engine.finish(attempt))
        await engine.until_waiting(1)
    assert await ending == "completed"
    assert await parked(engine, [waiting]) == []


@on_the_engine
async def test_plain_tasks_lock_no_provider(engine: Engine) -> None:
    await set_key_limit(engine, 1)
    task_id = await engine.submit()
    async with engine.holding("SELECT * FROM providers FOR UPDATE"):
        async with asyncio.timeout(60):
            attempt = await engine.start(task_id)
            assert await engine.finish(attempt) == "completed"


@on_the_engine
async def test_nobody_looks_again_for_what_is_parked(engine: Engine) -> None:
    await serve(engine)
    await set_key_limit(engine, 1)
    await engine.running(**A)
    ids = await engine.submit_many(3, **A)
    assert await start_next(engine) == []
    assert await parked(engine, ids) == ids
    assert await seconds_to_next_look(engine) is None


@on_the_engine
async def test_why_says_that_the_key_is_full_before_and_after_it_is_parked(engine: Engine) -> None:
    await serve(engine)
    await set_key_limit(engine, 2)
    await engine.running(**A)
    next_one, last = await engine.submit_many(2, **A)
    full = {"key": "a", "limit": 2, "running": 1}

    async def why(task_id: UUID) -> tuple[str, dict[str, object]]:
        said = await explanation_of(engine.pool, await engine.row(task_id), ANN, Settings())
        return str(said["reason"]), said["details"]

    assert (await why(next_one))[0] == "about-to-start"
    assert await why(last) == ("key-limit", full)
    (started,) = await start_next(engine)
    assert started.task_id == next_one
    reason, details = await why(last)
    assert (reason, details) == ("key-limit", {**full, "running": 2, "held": ["key"], "since": details["since"]})
    await set_key_limit(engine, None)
    assert (await why(await engine.submit(**A)))[0] == "about-to-start"


@on_the_engine
async def test_a_higher_priority_takes_the_room_from_one_that_came_before(engine: Engine) -> None:
    await serve(engine)
    await set_key_limit(engine, 1)
    first, urgent = await engine.submit(**A), await engine.submit(**A, priority=0)
    (started,) = await start_next(engine)
    assert started.task_id == urgent
    assert await parked(engine, [first, urgent]) == [first]
    assert (await look_or_none(engine)) == 0


async def look_or_none(engine: Engine) -> int:
    """How many are due, if anybody is."""
    try:
        view = await look(engine)
    except KeyError:
        return 0
    return view.fresh_due + view.retry_due


@on_the_engine
async def test_what_comes_while_a_claim_parks_finds_the_places_of_those_that_it_has_chosen_taken(
    engine: Engine,
) -> None:
    """They do not run yet, and count all the same."""
    await set_key_limit(engine, 2)
    chosen = await engine.submit_many(2, **A)
    late = await engine.submit(**A, priority=0)
    crowded = await engine.pool.fetchval(f"SELECT {named('beyond_room')}($1, $2, clock_timestamp())", [late], chosen)
    assert crowded == [late]
    parked_now = await engine.pool.fetchval(
        f"SELECT {named('park_keys_of')}($1, $2, clock_timestamp())", [late], chosen
    )
    assert parked_now == [late], "and nobody who is about to run is parked"
