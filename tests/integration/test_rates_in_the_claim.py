"""Rates are kept by the claim: who may start takes a place, who waits stays queued, and no window is ever over-used."""

import asyncio
import time
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from hypothesis import strategies as st

from tests.support.engine.dispatching import start_next, would_start
from tests.support.engine.examples import for_examples
from tests.support.engine.flow import change, look, lose_the_worker, provider, refusal, serve
from tests.support.engine.rated import (
    claim_at_once,
    claim_together,
    left,
    let_the_window_pass,
    places_taken,
    set_rate,
    take,
)
from tests.support.engine.store import Engine, empty_database, on_the_engine
from tests.support.servers.private_servers import Servers
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import providers, rates
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import Claimed, Refused

SLICES = 20


def configured(rate: dict[str, int] | None) -> Settings:
    return Settings(providers={"probe": {"actor": "probe", "rate": rate}})


async def next_look(engine: Engine) -> float | None:
    return await providers.seconds_to_next_look(engine.pool)


# The rate in force


@on_the_engine
async def test_the_configured_rate_is_in_force_and_an_operator_s_goes_before_it(engine: Engine) -> None:
    await providers.configure(engine.pool, configured({"limit": 2, "per_seconds": 60}))
    assert await left(engine) == 2
    await change(engine, rate={"limit": 7, "per_seconds": 3})
    await providers.configure(engine.pool, configured({"limit": 2, "per_seconds": 60}))
    assert await left(engine) == 7
    await change(engine, rate=None)
    assert await left(engine) == 2
    await providers.configure(engine.pool, configured(None))
    assert await left(engine) is None


@on_the_engine
async def test_a_change_of_the_rate_wakes_the_dispatcher_and_goes_on_with_the_same_moments(engine: Engine) -> None:
    await set_rate(engine, 3)
    await claim_together(engine, await engine.submit_many(3))
    async with engine.listening("windlass_dispatch") as heard:
        await change(engine, rate={"limit": 5, "per_seconds": 30})
    assert heard
    assert await left(engine) == 2
    await change(engine, rate={"limit": 1, "per_seconds": 3600})
    assert await left(engine) == 0


@on_the_engine
async def test_a_rate_of_zero_starts_nothing_and_wakes_nobody(engine: Engine) -> None:
    await set_rate(engine, 0)
    assert await refusal(engine) is Reason.RATE_LIMITED_UNTIL
    view = await look(engine)
    assert (view.fresh_starts, view.retry_starts, view.resumes) == (0, 0, 0)
    assert await next_look(engine) is None
    assert not await take(engine)


# The claim takes the places


@on_the_engine
async def test_a_call_starts_as_many_as_are_left_in_their_order_and_the_others_stay_queued(engine: Engine) -> None:
    await set_rate(engine, 2)
    low = await engine.submit(priority=5)
    normal = await engine.submit_many(2)
    high = await engine.submit(priority=0)
    started = await claim_together(engine, [low, *normal, high])
    assert {each.task_id for each in started} == {high, normal[0]}
    assert await engine.statuses([low, normal[1]]) == ["queued", "queued"]
    assert (await look(engine)).held == 2, "who waits holds no slot"
    assert await left(engine) == 0
    assert await refusal(engine) is Reason.RATE_LIMITED_UNTIL
    await let_the_window_pass(engine)
    assert len(await claim_together(engine, [low, normal[1]])) == 2


@on_the_engine
async def test_many_claims_at_once_on_many_connections_never_start_more(engine: Engine) -> None:
    await set_rate(engine, 5)
    await engine.provide("other", limit=None)
    await set_rate(engine, 3, name="other")
    task_ids = [*await engine.submit_many(20), *await engine.submit_many(20, provider="other")]
    started = await claim_at_once(engine, task_ids)
    assert sorted(each.provider for each in started) == ["other"] * 3 + ["probe"] * 5
    assert (await places_taken(engine), await places_taken(engine, "other")) == (5, 3)


@on_the_engine
async def test_claims_and_places_in_mid_attempt_share_one_window(engine: Engine) -> None:
    await set_rate(engine, 8)
    task_ids = await engine.submit_many(12)
    started, taken = await asyncio.gather(
        claim_at_once(engine, task_ids), asyncio.gather(*(take(engine) for _ in range(12)))
    )
    assert len(started) + sum(taken) == await places_taken(engine) == 8
    assert not await take(engine)


@on_the_engine
async def test_a_refused_and_a_repeated_claim_take_no_place(engine: Engine) -> None:
    await set_rate(engine, 3)
    await engine.provide("probe", limit=1)
    task_id, token = await engine.submit(), uuid4()
    for _ in range(3):
        assert isinstance(await engine.claim(task_id, token=token), Claimed)
    assert isinstance(await engine.claim(task_id), Refused)
    assert await refusal(engine) is Reason.PROVIDER_LIMIT
    assert isinstance(await engine.claim(await engine.submit(delay_seconds=60)), Refused)
    assert await places_taken(engine) == 1


@on_the_engine
async def test_going_on_waiting_for_an_open_job_takes_no_place_and_needs_none(engine: Engine) -> None:
    await set_rate(engine, 1)
    resuming, starting = await engine.submit_many(2)
    await engine.sql("UPDATE tasks SET job_open = true WHERE task_id = $1", resuming)
    assert (await look(engine)).resumes == 1
    resumed = await engine.start(resuming)
    assert resumed.job_open
    assert await places_taken(engine) == 0
    assert not (await engine.start(starting)).job_open
    assert await places_taken(engine) == 1


@pytest.mark.parametrize("how", ["interrupt", "retry", "worker-lost"])
@on_the_engine
async def test_no_end_gives_a_place_back_and_each_start_takes_one(engine: Engine, how: str) -> None:
    """A worker that is killed takes nothing with it: the place is on the provider's row, written with the claim."""
    await set_rate(engine, 2)
    attempt = await engine.running()
    if how == "worker-lost":
        await lose_the_worker(engine, attempt)
    else:
        await engine.finish(attempt, how, **({"delay_seconds": 0.0} if how == "retry" else {}))
    assert await places_taken(engine) == 1
    await engine.become_due(attempt.task_id)
    await engine.start(attempt.task_id)
    assert await places_taken(engine) == 2


@on_the_engine
async def test_a_provider_without_a_rate_is_neither_locked_nor_written(engine: Engine) -> None:
    version = "SELECT xmin::text || ctid::text FROM providers WHERE name = 'probe'"
    before = await engine.pool.fetchval(version)
    async with engine.holding("SELECT 1 FROM providers WHERE name = 'probe' FOR NO KEY UPDATE"):
        await engine.running()
    assert await take(engine)
    assert await engine.pool.fetchval(version) == before


@on_the_engine
async def test_a_rate_that_is_set_while_a_claim_is_under_way_starts_nothing_beyond_it(engine: Engine) -> None:
    task_id = await engine.submit()
    async with engine.holding("SELECT 1 FROM tasks WHERE task_id = $1 FOR UPDATE", task_id):
        claiming = asyncio.create_task(engine.claim(task_id))
        await engine.until_waiting(1)
        await set_rate(engine, 0)
    assert isinstance(await claiming, Refused)


# The window


@on_the_engine
async def test_places_of_one_slice_share_an_entry_so_that_there_are_never_many(engine: Engine) -> None:
    await set_rate(engine, 1000, per_seconds=1)
    for _ in range(200):
        assert await take(engine)
    row = await provider(engine)
    assert len(row["rate_moments"]) <= SLICES + 2
    assert row["rate_moments"] == sorted(row["rate_moments"])


MAKE_A_WINDOW = "UPDATE providers SET rate_moments = '{}', rate_counts = '{}', configured_rate = $1"
TAKE_AT = f"""
WITH free AS (
    SELECT p.name, least({named("rate_left")}(p, $1), $2::int) AS places FROM providers p WHERE name = 'probe'
), taken AS (
    UPDATE providers p
    SET (rate_moments, rate_counts) = (
        SELECT w.moments, w.counts FROM {named("rate_window_with")}(p, free.places, $1) AS w)
    FROM free WHERE p.name = free.name AND free.places > 0
    RETURNING p.rate_moments
)
SELECT free.places FROM free
"""

takings = st.lists(st.tuples(st.integers(0, 700), st.integers(1, 4)), min_size=10, max_size=40)
"""Milliseconds that pass, and how many then want a place."""


async def fill(engine: Engine, steps: list[tuple[int, int]]) -> None:
    limit, per_seconds = 3, 2
    window = timedelta(seconds=per_seconds * (1 + 1 / SLICES))
    await engine.sql(MAKE_A_WINDOW, {"limit": limit, "per_seconds": per_seconds})
    at = datetime(2026, 1, 1, tzinfo=UTC)
    taken: list[datetime] = []
    for passed, wanted in steps:
        at += timedelta(milliseconds=passed)
        taken += [at] * await engine.pool.fetchval(TAKE_AT, at, wanted)
        free_at = await engine.pool.fetchval(f"SELECT {named('rate_free_at')}(p, $1) FROM providers p", at)
        assert at < free_at <= at + window
        left_at = f"SELECT {named('rate_left')}(p, $1) FROM providers p"
        before = await engine.pool.fetchval(left_at, free_at - timedelta(microseconds=1))
        if before < limit:
            assert await engine.pool.fetchval(left_at, free_at) > before
    for begin in taken:
        assert sum(begin <= each < begin + window for each in taken) <= limit
    assert len(await engine.pool.fetchval("SELECT rate_moments FROM providers")) <= SLICES + 2


def test_in_no_window_are_more_taken_than_the_rate_allows_however_they_fall(
    servers: Servers, migrated_template: str
) -> None:
    """Not even if each call reaches the provider up to one slice later than its place was taken."""
    for_examples(empty_database(servers.database_url, migrated_template), takings, fill, number=25)


@on_the_engine
async def test_a_rate_that_was_lowered_is_free_when_fewer_than_its_limit_count(engine: Engine) -> None:
    await set_rate(engine, 10)
    await claim_together(engine, await engine.submit_many(3))
    await let_the_window_pass(engine, seconds=40)
    began = time.monotonic()
    await claim_together(engine, await engine.submit_many(2))
    await set_rate(engine, 2)
    wait = await rates.take(engine.pool, "probe")
    assert wait is not None
    assert wait.again_seconds is not None
    passed = time.monotonic() - began
    assert 60 - passed < wait.again_seconds <= 63, "the three that are older are not enough"


# What the dispatcher makes of it


@on_the_engine
async def test_no_more_are_started_than_places_are_left(engine: Engine) -> None:
    await serve(engine)
    await set_rate(engine, 3)
    task_ids = await engine.submit_many(8)
    await engine.start(task_ids[0])
    assert await would_start(engine) == task_ids[1:3]
    assert len(await start_next(engine)) == 2
    assert await start_next(engine) == []


@on_the_engine
async def test_the_next_look_is_when_a_place_becomes_free_if_anything_waits_for_it(engine: Engine) -> None:
    await set_rate(engine, 2)
    assert await next_look(engine) is None
    began = time.monotonic()
    await claim_together(engine, await engine.submit_many(2))
    assert await next_look(engine) is None, "nothing waits"
    waiting = await engine.submit()
    seconds = await next_look(engine)
    assert seconds is not None
    assert 60 - (time.monotonic() - began) < seconds <= 63
    await engine.cancel(waiting)
    assert await next_look(engine) is None
