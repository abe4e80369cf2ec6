"""The breaker: opened by the provider's own faults, for everybody, and closed by one trial and by nothing else."""

import asyncio

import pytest

from shared.errors import InvalidInput, NetworkTimeout, ServiceUnavailable, SubprocessFailed, TimedOut
from shared.settings import Settings
from shared.store import flow, providers, tasks
from shared.store.flow import Rules
from shared.store.tasks import Claim, Claimed, Refused
from tests.integration import flow as says
from tests.integration.engine import RULES, Engine, an_ending, on_the_engine
from tests.integration.flow import (
    VERDICTS,
    breaker,
    change,
    dispatch,
    fail,
    let_the_time_pass,
    look,
    open_the_breaker,
    provider,
    provider_story,
    refusal,
    succeed,
    unavailable,
)


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
    assert await refusal(engine) == "breaker-open"


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
    await says.ring_for(engine, 2)
    await open_the_breaker(engine)
    answers = await tasks.claim(engine.pool, "worker-1", [Claim(first, first), Claim(second, second)], 30)
    assert answers == [Refused(first, "breaker-open"), Refused(second, "breaker-open")]
    assert await dispatch(engine) == []
    row = await engine.row(first)
    assert (row["status"], row["doorbell_token"], row["attempt"], row["retry_count"]) == ("queued", None, 0, 0)


@on_the_engine
async def test_when_its_time_is_over_one_task_tries_and_the_others_wait(engine: Engine) -> None:
    waiting = await engine.submit_many(5)
    await open_the_breaker(engine)
    await let_the_time_pass(engine)
    (chosen,) = await dispatch(engine)
    assert await dispatch(engine) == [], "its doorbell is out"
    answers = await asyncio.gather(*(engine.claim(task_id) for task_id in waiting if task_id != chosen))
    assert sum(isinstance(answer, Claimed) for answer in answers) == 1, "whoever comes first is the trial"
    assert {answer.reason for answer in answers if isinstance(answer, Refused)} == {"on-trial"}
    assert await engine.claim(chosen) == Refused(chosen, "on-trial")
    assert await breaker(engine) == "half-open"
    assert (await look(engine)).trial_running
    assert await provider_story(engine) == ["open", "half-open"]
    assert await dispatch(engine) == []


@on_the_engine
async def test_several_claims_in_one_call_make_one_trial(engine: Engine) -> None:
    waiting = await engine.submit_many(4)
    await open_the_breaker(engine)
    await let_the_time_pass(engine)
    answers = await tasks.claim(engine.pool, "worker-1", [Claim(each, each) for each in waiting], 30)
    assert [isinstance(answer, Claimed) for answer in answers] == [True, False, False, False]


async def trial(engine: Engine) -> Claimed:
    """The breaker was open, its time is over, and one task tries."""
    await open_the_breaker(engine)
    await let_the_time_pass(engine)
    attempt = await engine.running()
    assert await breaker(engine) == "half-open"
    return attempt


@pytest.mark.parametrize(
    ("how", "state", "story"),
    [
        ("complete", "closed", ["close"]),
        ("provider-fault", "open", ["open"]),
        ("invalid", "half-open", []),
        ("bug", "half-open", []),
        ("interrupt", "half-open", []),
        ("cancelled", "half-open", []),
        ("worker-lost", "half-open", []),
        ("429", "half-open", ["pause"]),
    ],
)
@on_the_engine
async def test_the_trial_s_outcome_decides(engine: Engine, how: str, state: str, story: list[str]) -> None:
    attempt = await trial(engine)
    await VERDICTS[how](engine, attempt)
    assert await breaker(engine) == state
    assert await provider_story(engine) == ["open", "half-open", *story]
    assert not (await look(engine)).trial_running
    await let_the_time_pass(engine)
    assert isinstance(await engine.claim(await engine.submit()), Claimed), "the next one may start, or try"
    if state != "closed":
        assert await refusal(engine) == "on-trial"


@on_the_engine
async def test_a_trial_that_fails_opens_it_again_for_as_long_and_says_why(engine: Engine) -> None:
    await fail(engine, await trial(engine), ServiceUnavailable("still down"))
    row = await provider(engine)
    assert row["breaker_reason"] == "the task that tried failed: still down"
    assert (row["breaker_until"] - row["breaker_changed_at"]).total_seconds() == RULES.breaker_open_seconds
    assert await refusal(engine) == "breaker-open"


@pytest.mark.parametrize("how", ["complete", "provider-fault"])
@on_the_engine
async def test_late_results_of_earlier_attempts_decide_nothing(engine: Engine, how: str) -> None:
    late = [await engine.running() for _ in range(12)]
    attempt = await trial(engine)
    for each in late[:6]:
        await VERDICTS[how](engine, each)
    assert await breaker(engine) == "half-open"
    assert await refusal(engine) == "on-trial"
    await engine.finish(attempt)
    assert await breaker(engine) == "closed"
    for each in late[6:]:
        await VERDICTS[how](engine, each)
    assert (await engine.pool.fetchval("SELECT (window_of(p, $1)).results FROM providers p", vars(RULES))) == 0


@on_the_engine
async def test_once_closed_the_window_begins_anew(engine: Engine) -> None:
    await engine.finish(await trial(engine))
    await unavailable(engine, 9)
    assert await breaker(engine) == "closed"
    await unavailable(engine, 1)
    assert await breaker(engine) == "open"


@on_the_engine
async def test_the_first_trial_is_forgotten_when_its_worker_was_lost(engine: Engine) -> None:
    lost = await trial(engine)
    await says.lose_the_worker(engine, lost)
    second = await engine.running()
    assert await engine.finish(lost) is None
    assert await breaker(engine) == "half-open", "who lost the task has no say any more"
    await engine.finish(second)
    assert await breaker(engine) == "closed"


@on_the_engine
async def test_a_trial_needs_a_free_slot_too(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    await open_the_breaker(engine)
    await let_the_time_pass(engine)
    await engine.sql("UPDATE providers SET configured_limit = 0")
    assert await refusal(engine) == "no-slot"
    assert await breaker(engine) == "open"


@on_the_engine
async def test_opened_by_an_operator_it_stays_open(engine: Engine) -> None:
    await change(engine, breaker="open")
    await let_the_time_pass(engine)
    assert await refusal(engine) == "breaker-open"
    assert await dispatch(engine) == []
    await change(engine, breaker=None)
    assert isinstance(await engine.claim(await engine.submit()), Claimed)
    assert await provider_story(engine) == ["open", "close"]


@on_the_engine
async def test_an_operator_s_open_breaker_is_not_closed_by_what_still_runs(engine: Engine) -> None:
    attempt = await trial(engine)
    await change(engine, breaker="open")
    await engine.finish(attempt)
    assert await refusal(engine) == "breaker-open"


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
    seconds = await providers.seconds_to_next_look(engine.pool, first_check_seconds=2, at_most_seconds=15)
    assert seconds is not None
    assert 50 < seconds <= 60
    await change(engine, breaker="open")
    assert await providers.seconds_to_next_look(engine.pool, first_check_seconds=2, at_most_seconds=15) is None


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
