"""The breaker: opened by the provider's own faults, for everybody, and closed by one trial and by nothing else."""

import asyncio

import pytest

from tests.support.engine.dispatching import would_start
from tests.support.engine.flow import (
    breaker,
    change,
    fail,
    let_the_time_pass,
    open_the_breaker,
    provider,
    provider_story,
    refusal,
    succeed,
    trial,
    unavailable,
)
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from windlass.shared.errors import InvalidInput, NetworkTimeout, ServiceUnavailable, SubprocessFailed, TimedOut
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import flow, providers
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.tasks import Claim, Claimed, Refused


@on_the_engine
async def test_it_opens_at_ten_results_with_half_of_them_failures(engine: Engine) -> None:
    await succeed(engine, 5)
    await unavailable(engine, 4)
    assert await breaker(engine) == "closed"
    await unavailable(engine, 1)
    row = await provider(engine)
    assert (row["breaker_state"], row["breaker_reason"]) == ("open", "5 of the last 10 results were failures")
    assert (row["breaker_until"] - row["breaker_changed_at"]).total_seconds() == RULES.breaker_open_seconds
    assert await provider_story(engine) == ["open"]
    assert await refusal(engine) == Reason.BREAKER_OPEN


@on_the_engine
async def test_it_also_opens_by_a_success_that_fills_the_window(engine: Engine) -> None:
    await unavailable(engine, 9)
    assert await breaker(engine) == "closed", "nine are too few"
    await succeed(engine, 1)
    assert (await provider(engine))["breaker_reason"] == "9 of the last 10 results were failures"


@on_the_engine
async def test_only_the_latest_twenty_count(engine: Engine) -> None:
    await unavailable(engine, 4)
    await succeed(engine, 16)
    await unavailable(engine, 9)
    assert await breaker(engine) == "closed"
    await unavailable(engine, 1)
    assert (await provider(engine))["breaker_reason"] == "10 of the last 20 results were failures"


@on_the_engine
async def test_what_is_too_old_counts_no_more(engine: Engine) -> None:
    await unavailable(engine, 9)
    await engine.sql("UPDATE provider_results SET at = at - interval '1 h'")
    await unavailable(engine, 9)
    assert await breaker(engine) == "closed"


@pytest.mark.parametrize("error", [InvalidInput("no"), TimedOut("slow"), SubprocessFailed("exit 1"), KeyError("bug")])
@on_the_engine
async def test_what_is_not_the_provider_s_fault_does_not_count(engine: Engine, error: Exception) -> None:
    for _ in range(12):
        await fail(engine, await engine.running(), error)
    assert await breaker(engine) == "closed"
    assert (await engine.pool.fetchval("SELECT count(*) FROM provider_results")) == 0


@on_the_engine
async def test_a_lost_network_is_the_provider_s_fault_and_so_is_one_that_uses_up_the_retries(engine: Engine) -> None:
    for number in range(10):
        await fail(engine, await engine.running(max_retries=number % 2), NetworkTimeout("no answer"))
    assert await breaker(engine) == "open"


@on_the_engine
async def test_one_provider_s_faults_are_not_another_s(engine: Engine) -> None:
    await engine.provide("other", limit=None)
    await open_the_breaker(engine)
    assert isinstance(await engine.claim(await engine.submit(provider="other")), Claimed)


@on_the_engine
async def test_ends_at_the_same_time_open_it_once(engine: Engine) -> None:
    running = [await engine.running() for _ in range(12)]
    await asyncio.gather(*(fail(engine, attempt, ServiceUnavailable("busy")) for attempt in running))
    assert await breaker(engine) == "open"
    assert await provider_story(engine) == ["open"]


@on_the_engine
async def test_a_batch_of_ends_opens_it(engine: Engine) -> None:
    running = [await engine.running() for _ in range(10)]
    endings = [an_ending(attempt, "retry", provider_failed=True) for attempt in running]
    async with engine.listening("windlass_dispatch") as heard:
        assert set(await tasks.end(engine.pool, endings, RULES)) == {"retrying"}
    assert heard
    assert await breaker(engine) == "open"


@on_the_engine
async def test_while_it_is_open_nothing_is_rung_for_and_claims_are_refused_without_cost(engine: Engine) -> None:
    first, second = await engine.submit_many(2)
    await open_the_breaker(engine)
    answers = await tasks.claim(engine.pool, "worker-1", [Claim(first, first), Claim(second, second)], 30)
    assert answers == [Refused(first, Reason.BREAKER_OPEN), Refused(second, Reason.BREAKER_OPEN)]
    assert await would_start(engine) == []
    row = await engine.row(first)
    assert (row["status"], row["attempt"], row["retry_count"]) == ("queued", 0, 0)


@on_the_engine
async def test_opened_by_an_operator_it_stays_open(engine: Engine) -> None:
    await change(engine, breaker="open")
    await let_the_time_pass(engine)
    assert await refusal(engine) == Reason.BREAKER_OPEN
    assert await would_start(engine) == []
    await change(engine, breaker=None)
    assert isinstance(await engine.claim(await engine.submit()), Claimed)
    assert await provider_story(engine) == ["open", "close"]


@on_the_engine
async def test_an_operator_s_open_breaker_is_not_closed_by_what_still_runs(engine: Engine) -> None:
    attempt = await trial(engine)
    await change(engine, breaker="open")
    await engine.finish(attempt)
    assert await refusal(engine) == Reason.BREAKER_OPEN


@on_the_engine
async def test_closed_by_an_operator_it_stays_closed_whatever_happens(engine: Engine) -> None:
    await open_the_breaker(engine)
    await change(engine, breaker="closed")
    await unavailable(engine, 12)
    assert await breaker(engine) == "closed"
    await change(engine, breaker="auto")
    assert await breaker(engine) == "closed", "what was while it was kept closed is forgotten"
    await unavailable(engine, 10)
    assert await breaker(engine) == "open"


@on_the_engine
async def test_the_dispatcher_sleeps_until_its_time_is_over(engine: Engine) -> None:
    await open_the_breaker(engine)
    await engine.sql("DELETE FROM tasks")
    left = "SELECT extract(epoch FROM breaker_until - clock_timestamp())::float FROM providers WHERE name = 'probe'"
    most = await engine.pool.fetchval(left)
    seconds = await providers.seconds_to_next_look(engine.pool)
    assert seconds is not None
    assert await engine.pool.fetchval(left) <= seconds <= most <= RULES.breaker_open_seconds
    await change(engine, breaker="open")
    assert await providers.seconds_to_next_look(engine.pool) is None


@on_the_engine
async def test_the_janitor_opens_one_whose_results_missed_each_other(engine: Engine) -> None:
    await engine.sql(
        "INSERT INTO provider_results (provider, failed, task_id) SELECT 'probe', true, gen_random_uuid()"
        " FROM generate_series(1, 10)"
    )
    await flow.judge_windows(engine.pool, RULES)
    assert await breaker(engine) == "open"


@on_the_engine
async def test_old_results_are_forgotten_and_recent_ones_kept(engine: Engine) -> None:
    await succeed(engine, 5)
    await engine.sql("UPDATE provider_results SET at = at - interval '1 day'")
    await succeed(engine, 3)
    assert await flow.forget_results(engine.pool, RULES, at_most=4) == 4
    assert await flow.forget_results(engine.pool, RULES, at_most=4) == 1
    assert await flow.forget_results(engine.pool, RULES, at_most=4) == 0
    assert await engine.pool.fetchval("SELECT count(*) FROM provider_results") == 3


@on_the_engine
async def test_the_thresholds_are_settings(engine: Engine) -> None:
    strict = Rules.of(Settings(breaker_least_results=2, breaker_failure_ratio=1.0, breaker_open_seconds=5))
    for _ in range(2):
        await tasks.end(engine.pool, [an_ending(await engine.running(), "retry", provider_failed=True)], strict)
    row = await provider(engine)
    assert (row["breaker_until"] - row["breaker_changed_at"]).total_seconds() == 5


@on_the_engine
async def test_a_healthy_provider_without_a_limit_is_locked_neither_by_claims_nor_by_ends(engine: Engine) -> None:
    """Or every worker of a provider would queue at its row."""
    async with engine.holding("SELECT 1 FROM providers FOR UPDATE"):
        await succeed(engine, 3)


@on_the_engine
async def test_an_end_locks_its_provider_before_its_task(engine: Engine) -> None:
    """As the claim does: the other way round the two would wait for each other."""
    attempt = await engine.running()
    async with engine.holding("SELECT 1 FROM providers FOR UPDATE"):
        ending = asyncio.create_task(fail(engine, attempt, ServiceUnavailable("busy")))
        await engine.until_waiting(1)
        await engine.sql("UPDATE tasks SET heartbeat_at = clock_timestamp()")
    assert await ending == "retrying"
