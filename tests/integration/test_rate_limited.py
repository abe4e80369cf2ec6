"""Rate limits: the first 429 pauses a provider everywhere, one task goes first then, and nobody pays for waiting."""

from dataclasses import replace
from datetime import datetime
from uuid import UUID

import pytest

from tests.support.engine.dispatching import start_next, would_start
from tests.support.engine.flow import (
    VERDICTS,
    be_told_429,
    change,
    let_the_time_pass,
    open_the_breaker,
    pause,
    provider,
    provider_story,
    refusal,
)
from tests.support.engine.store import RULES, Engine, on_the_engine
from windlass.services.actors.worker.ending.retries import ending_of_failure
from windlass.shared.errors import RateLimited
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.flow_control import flow, providers
from windlass.shared.store.flow_control.flow import Rules
from windlass.shared.store.tasks import Claim, Claimed, Refused


async def clock(engine: Engine) -> datetime:
    """Postgres' own: how long something has to wait yet is held against when it can have begun."""
    now: datetime = await engine.pool.fetchval("SELECT clock_timestamp()")
    return now


async def paused_for(engine: Engine, since: datetime) -> float:
    """The seconds from then until the pause is over."""
    until = (await provider(engine))["paused_until"]
    assert until is not None
    return float((until - since).total_seconds())


@on_the_engine
async def test_the_first_429_pauses_the_provider_for_the_time_it_named(engine: Engine) -> None:
    before = await clock(engine)
    async with engine.listening("windlass_dispatch") as heard:
        told = await pause(engine)
    assert heard
    assert await paused_for(engine, before) >= 60
    assert await paused_for(engine, await clock(engine)) <= 66
    assert await refusal(engine) == Reason.RATE_LIMITED_UNTIL
    assert await would_start(engine) == []
    task, row = await engine.row(told), await provider(engine)
    assert (task["status"], task["retry_count"], task["rate_limited_count"]) == ("retrying", 0, 1)
    assert task["available_at"] == row["paused_until"], "it may go as soon as anybody may"
    assert row["pause_reason"] == "slow down"
    assert await provider_story(engine) == ["pause"]


@on_the_engine
async def test_other_providers_go_on(engine: Engine) -> None:
    await engine.provide("other", limit=None)
    await pause(engine)
    assert isinstance(await engine.claim(await engine.submit(provider="other")), Claimed)


@on_the_engine
async def test_a_longer_pause_is_never_shortened(engine: Engine) -> None:
    long, short, longer = [await engine.running() for _ in range(3)]
    await be_told_429(engine, long, retry_after=300)
    before = await provider(engine)
    await be_told_429(engine, short, retry_after=5)
    assert (await provider(engine))["paused_until"] == before["paused_until"]
    told_at = await clock(engine)
    await be_told_429(engine, longer, retry_after=500)
    assert await paused_for(engine, told_at) >= 500


@on_the_engine
async def test_a_pause_has_a_cap_and_nobody_waits_longer_than_it(engine: Engine) -> None:
    attempt = await engine.running()
    told_at = await clock(engine)
    await be_told_429(engine, attempt, retry_after=1e6)
    assert await paused_for(engine, told_at) >= RULES.longest_pause_seconds
    assert await paused_for(engine, await clock(engine)) <= RULES.longest_pause_seconds
    assert (await engine.row(attempt.task_id))["available_at"] == (await provider(engine))["paused_until"]


@on_the_engine
async def test_the_cap_is_a_setting(engine: Engine) -> None:
    rules = Rules.of(Settings(longest_pause_seconds=7))
    ending = ending_of_failure(await engine.running(), RateLimited("slow down"))
    told_at = await clock(engine)
    await tasks.end(engine.pool, [ending], rules)
    assert await paused_for(engine, told_at) >= 7
    assert await paused_for(engine, await clock(engine)) <= 7


@on_the_engine
async def test_a_429_that_buries_its_task_pauses_as_well(engine: Engine) -> None:
    attempt = replace(await engine.running(max_retries=0), rate_limited_count=19)
    told_at = await clock(engine)
    assert await be_told_429(engine, attempt) == "dead"
    assert await paused_for(engine, told_at) >= 60


@on_the_engine
async def test_a_waiting_task_is_refused_without_cost_and_not_started(engine: Engine) -> None:
    (waiting,) = await engine.submit_many(1)
    await pause(engine)
    assert await engine.claim(waiting) == Refused(waiting, Reason.RATE_LIMITED_UNTIL)
    row = await engine.row(waiting)
    assert (row["status"], row["retry_count"], row["attempt"]) == ("queued", 0, 0)
    assert await would_start(engine) == []


@on_the_engine
async def test_the_dispatcher_sleeps_until_the_pause_is_over(engine: Engine) -> None:
    before = await clock(engine)
    await pause(engine)
    await engine.sql("UPDATE tasks SET available_at = now() + interval '1 h'")
    seconds = await providers.seconds_to_next_look(engine.pool)
    assert seconds is not None
    passed = (await clock(engine) - before).total_seconds()
    assert 60 - passed <= seconds <= 66


@on_the_engine
async def test_after_the_pause_one_goes_first_and_its_success_lets_the_others_follow(engine: Engine) -> None:
    waiting = await engine.submit_many(6)
    await pause(engine)
    await let_the_time_pass(engine)
    (first,) = await would_start(engine)
    assert first in waiting
    attempt = await engine.start(first)
    assert await would_start(engine) == []
    assert await refusal(engine) == Reason.ON_TRIAL
    await engine.finish(attempt)
    assert (await provider(engine))["paused_until"] is None
    assert await provider_story(engine) == ["pause", "resume"]
    assert len(await would_start(engine)) == 7


@pytest.mark.parametrize(
    ("how", "over"),
    [
        ("complete", True),
        ("invalid", True),
        ("bug", True),
        ("provider-fault", False),
        ("interrupt", False),
        ("cancelled", False),
        ("worker-lost", False),
        ("429", False),
    ],
)
@on_the_engine
async def test_whoever_goes_first_decides_whether_the_pause_is_over(engine: Engine, how: str, over: bool) -> None:
    await pause(engine)
    await let_the_time_pass(engine)
    await VERDICTS[how](engine, await engine.running())
    assert ((await provider(engine))["paused_until"] is None) == over
    await let_the_time_pass(engine)
    assert isinstance(await engine.claim(await engine.submit()), Claimed)
    if not over:
        assert await refusal(engine) == Reason.ON_TRIAL, "another one goes first"


@on_the_engine
async def test_a_pause_that_began_meanwhile_is_not_ended_by_an_earlier_trial(engine: Engine) -> None:
    late = await engine.running()
    await pause(engine)
    await let_the_time_pass(engine)
    first = await engine.running()
    await be_told_429(engine, late)
    await engine.finish(first)
    assert await refusal(engine) == Reason.RATE_LIMITED_UNTIL


@on_the_engine
async def test_the_one_that_goes_first_was_not_told_429_itself_if_there_is_such_a_one(engine: Engine) -> None:
    told = [await engine.running(priority=0) for _ in range(3)]
    failed = await engine.running(priority=5)
    await engine.finish(failed, "retry", delay_seconds=0)
    for attempt in told:
        await be_told_429(engine, attempt)
    await let_the_time_pass(engine)
    assert await would_start(engine) == [failed.task_id]
    await engine.cancel(failed.task_id)
    (first,) = await would_start(engine)
    assert first in {attempt.task_id for attempt in told}, "if there is no other, one of them"


@on_the_engine
async def test_in_one_call_too_the_trial_is_one_that_was_not_told_429(engine: Engine) -> None:
    told = await pause(engine)
    other = await engine.submit(priority=9)
    await let_the_time_pass(engine)
    answers = await tasks.claim(engine.pool, "worker-1", [Claim(told, told), Claim(other, other)], 30)
    assert [type(answer) for answer in answers] == [Refused, Claimed]


@on_the_engine
async def test_a_429_during_a_breaker_s_trial_pauses_and_then_one_trial_serves_both(engine: Engine) -> None:
    await open_the_breaker(engine)
    await let_the_time_pass(engine)
    await be_told_429(engine, await engine.running())
    await let_the_time_pass(engine)
    await engine.completed()
    row = await provider(engine)
    assert (row["breaker_state"], row["paused_until"]) == ("closed", None)


@pytest.mark.parametrize("word", [False, None])
@on_the_engine
async def test_an_operator_can_end_a_pause(engine: Engine, word: bool | None) -> None:
    await pause(engine)
    until = (await provider(engine))["paused_until"]
    async with engine.listening("windlass_dispatch") as heard:
        await change(engine, paused=word)
    assert heard, "the dispatcher looks at once"
    assert isinstance(await engine.claim(await engine.submit()), Claimed)
    assert await provider_story(engine) == ["pause", "resume"]
    (told, _) = await flow.events(engine.pool, "probe", before=None, limit=9)
    assert (told["reason"], told["data"]["pause_reason"]) == ("by an operator", "slow down")
    assert datetime.fromisoformat(told["data"]["until"]) == until


async def be_told_again(engine: Engine, task_id: UUID) -> str | None:
    """Its next attempt is told 429 as well."""
    await let_the_time_pass(engine)
    return await be_told_429(engine, await engine.start(task_id), retry_after=60)


@on_the_engine
async def test_a_task_that_is_told_429_while_others_pass_waits_alone(engine: Engine) -> None:
    unlucky = await pause(engine)
    await let_the_time_pass(engine)
    await engine.completed()
    before = await clock(engine)
    assert await be_told_again(engine, unlucky) == "retrying"
    assert (await provider(engine))["paused_until"] is None
    assert isinstance(await engine.claim(await engine.submit()), Claimed)
    again_at = (await engine.row(unlucky))["available_at"]
    assert (again_at - before).total_seconds() >= 60
    assert (again_at - await clock(engine)).total_seconds() <= 66
    assert await provider_story(engine) == ["pause", "resume", "rate-limited"]


@on_the_engine
async def test_when_a_second_one_is_told_so_too_it_is_a_limit_for_all(engine: Engine) -> None:
    """Both were told 429 long ago and others passed since: the first to be told again may be unlucky, not the other."""
    first, second = await engine.running(), await engine.running()
    for attempt in (first, second):
        await be_told_429(engine, attempt)
    await let_the_time_pass(engine)
    await engine.completed()
    again = [await engine.start(first.task_id), await engine.start(second.task_id)]
    await be_told_429(engine, again[0])
    assert (await provider(engine))["paused_until"] is None
    await be_told_429(engine, again[1])
    assert await refusal(engine) == Reason.RATE_LIMITED_UNTIL


@on_the_engine
async def test_two_that_are_always_told_429_do_not_keep_the_provider_paused(engine: Engine) -> None:
    first, second = await engine.running(), await engine.running()
    for attempt in (first, second):
        await be_told_429(engine, attempt)
    for _ in range(3):
        for attempt in (first, second):
            await let_the_time_pass(engine)
            await engine.completed()
            await be_told_again(engine, attempt.task_id)
            assert (await provider(engine))["paused_until"] is None


@on_the_engine
async def test_a_task_that_is_always_told_429_while_others_pass_is_buried_after_20(engine: Engine) -> None:
    unlucky = await pause(engine)
    for number in range(2, 21):
        await let_the_time_pass(engine)
        await engine.completed()
        status = await be_told_again(engine, unlucky)
        assert status == ("dead" if number == 20 else "retrying")
        assert (await provider(engine))["paused_until"] is None
    row = await engine.row(unlucky)
    assert (row["attempt"], row["error"]["type"], row["error"]["details"]["others_passed"]) == (20, "RateLimited", True)


@on_the_engine
async def test_under_a_limit_for_all_20_in_a_row_cost_one_retry(engine: Engine) -> None:
    task_id = await pause(engine)
    for _ in range(18):
        assert await be_told_again(engine, task_id) == "retrying"
    assert (await engine.row(task_id))["retry_count"] == 0
    assert await be_told_again(engine, task_id) == "retrying"
    assert (await engine.row(task_id))["retry_count"] == 1


@on_the_engine
async def test_a_hundred_tasks_in_a_storm_make_a_handful_of_calls_use_no_retry_and_all_complete(engine: Engine) -> None:
    """The provider says 429 to the first eight calls, and takes five at a time afterwards."""
    await engine.provide("probe", limit=5)
    waiting = set(await engine.submit_many(100))
    calls = told = 0
    while waiting:
        attempts = await start_next(engine)
        if not attempts:
            await let_the_time_pass(engine)
            continue
        for attempt in attempts:
            calls += 1
            if told < 8:
                told += 1
                assert await be_told_429(engine, attempt) == "retrying"
            else:
                await engine.finish(attempt)
                waiting.discard(attempt.task_id)
    assert calls == 108, "five at once before anybody knew, then one at a time"
    assert await engine.count("retry_count > 0") == 0
    assert await provider_story(engine) == ["pause"] * 4 + ["resume"]
