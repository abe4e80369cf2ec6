"""The breaker's trial: when its time is over one task tries, its outcome decides, and nothing else does."""

import asyncio

import pytest

from tests.support.engine import flow as says
from tests.support.engine.dispatching import would_start
from tests.support.engine.flow import (
    VERDICTS,
    breaker,
    fail,
    let_the_time_pass,
    look,
    open_the_breaker,
    provider,
    provider_story,
    refusal,
    trial,
    unavailable,
)
from tests.support.engine.store import RULES, Engine, on_the_engine
from windlass.shared.errors import ServiceUnavailable
from windlass.shared.reasons import Reason
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import Claim, Claimed, Refused


@on_the_engine
async def test_when_its_time_is_over_one_task_tries_and_the_others_wait(engine: Engine) -> None:
    waiting = await engine.submit_many(5)
    await open_the_breaker(engine)
    await let_the_time_pass(engine)
    (chosen,) = await would_start(engine)
    answers = await asyncio.gather(*(engine.claim(task_id) for task_id in waiting if task_id != chosen))
    assert sum(isinstance(answer, Claimed) for answer in answers) == 1, "whoever comes first is the trial"
    assert {answer.reason for answer in answers if isinstance(answer, Refused)} == {Reason.ON_TRIAL}
    assert await engine.claim(chosen) == Refused(chosen, Reason.ON_TRIAL)
    assert await breaker(engine) == "half-open"
    assert (await look(engine)).trial_running
    assert await provider_story(engine) == ["open", "half-open"]
    assert await would_start(engine) == []


@on_the_engine
async def test_several_claims_in_one_call_make_one_trial(engine: Engine) -> None:
    waiting = await engine.submit_many(4)
    await open_the_breaker(engine)
    await let_the_time_pass(engine)
    answers = await tasks.claim(engine.pool, "worker-1", [Claim(each, each) for each in waiting], 30)
    assert [isinstance(answer, Claimed) for answer in answers] == [True, False, False, False]


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
        assert await refusal(engine) == Reason.ON_TRIAL


@on_the_engine
async def test_a_trial_that_fails_opens_it_again_for_as_long_and_says_why(engine: Engine) -> None:
    await fail(engine, await trial(engine), ServiceUnavailable("still down"))
    row = await provider(engine)
    assert row["breaker_reason"] == "the task that tried failed: still down"
    assert (row["breaker_until"] - row["breaker_changed_at"]).total_seconds() == RULES.breaker_open_seconds
    assert await refusal(engine) == Reason.BREAKER_OPEN


@pytest.mark.parametrize("how", ["complete", "provider-fault"])
@on_the_engine
async def test_late_results_of_earlier_attempts_decide_nothing(engine: Engine, how: str) -> None:
    late = [await engine.running() for _ in range(12)]
    attempt = await trial(engine)
    for each in late[:6]:
        await VERDICTS[how](engine, each)
    assert await breaker(engine) == "half-open"
    assert await refusal(engine) == Reason.ON_TRIAL
    await engine.finish(attempt)
    assert await breaker(engine) == "closed"
    for each in late[6:]:
        await VERDICTS[how](engine, each)
    assert (
        await engine.pool.fetchval(f"SELECT ({named('window_of')}(p, $1)).results FROM providers p", vars(RULES))
    ) == 0


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
    assert await refusal(engine) == Reason.PROVIDER_LIMIT
    assert await breaker(engine) == "open"
