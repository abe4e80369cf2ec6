"""Claims: a task runs once, a provider's slots are never exceeded, and a refusal says why."""

import asyncio
from contextlib import AsyncExitStack
from uuid import uuid4

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.reasons import Reason
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import Claim, Claimed, Refused

ROUNDS = 20


def granted(answers: list[Claimed | Refused]) -> list[Claimed]:
    return [answer for answer in answers if isinstance(answer, Claimed)]


def reasons(answers: list[Claimed | Refused]) -> list[str]:
    return [answer.reason for answer in answers if isinstance(answer, Refused)]


@on_the_engine
async def test_a_waiting_task_is_given_to_the_worker_that_claims_it(engine: Engine) -> None:
    task_id = await engine.submit(payload={"seconds": 1}, timeout_seconds=77.0, max_retries=5)
    attempt = await engine.claim(task_id, worker="worker-7", lease_seconds=30)
    assert isinstance(attempt, Claimed)
    assert (attempt.attempt, attempt.payload, attempt.timeout_seconds) == (1, {"seconds": 1}, 77.0)
    assert (attempt.actor, attempt.provider, attempt.max_retries) == ("probe", "probe", 5)
    row = await engine.row(task_id)
    assert (row["status"], row["attempt"], row["worker_id"]) == ("running", 1, "worker-7")
    assert (row["lease_expires_at"] - row["started_at"]).total_seconds() == 30
    event = (await engine.history(task_id))[-1]
    assert (event["type"], event["attempt"], event["data"]["status"]) == ("claim", 1, "running")
    assert event["data"]["worker_id"] == "worker-7"


@on_the_engine
async def test_a_running_task_is_not_given_to_a_second_worker(engine: Engine) -> None:
    attempt = await engine.running()
    assert await engine.claim(attempt.task_id) == Refused(attempt.task_id, Reason.RUNNING)
    assert (await engine.row(attempt.task_id))["attempt"] == 1


@on_the_engine
async def test_of_two_workers_that_race_for_a_task_one_wins(engine: Engine) -> None:
    for task_id in await engine.submit_many(ROUNDS):
        answers = await asyncio.gather(*(engine.claim(task_id, worker=f"worker-{each}") for each in range(2)))
        (winner,) = granted(answers)
        assert reasons(answers) == [Reason.RUNNING]
        row = await engine.row(task_id)
        assert (row["attempt"], row["claim_token"]) == (1, winner.claim_token)
        assert await engine.story(task_id) == ["submit", "claim"]


@on_the_engine
async def test_a_repeated_claim_is_answered_as_the_first_time(engine: Engine) -> None:
    """The reply to the first one may have been lost."""
    task_id, token = await engine.submit(), uuid4()
    first = await engine.claim(task_id, token=token)
    assert isinstance(first, Claimed)
    assert await engine.claim(task_id, token=token) == first
    assert await engine.story(task_id) == ["submit", "claim"]


@on_the_engine
async def test_claims_that_had_to_wait_for_the_provider_s_lock_do_not_overshoot(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    first, second = await engine.submit_many(2)
    await engine.be_connected(3)
    async with engine.holding("SELECT 1 FROM providers WHERE name = 'probe' FOR NO KEY UPDATE"):
        claims = [asyncio.create_task(engine.claim(task_id)) for task_id in (first, second)]
        await engine.until_waiting(2)
        assert await engine.count("status = 'running'") == 0
    answers = await asyncio.gather(*claims)
    assert len(granted(answers)) == 1
    assert reasons(answers) == [Reason.PROVIDER_LIMIT]
    assert await engine.count("status = 'running'") == 1


@on_the_engine
async def test_a_claim_that_waits_behind_another_s_sees_the_slot_that_it_took(engine: Engine) -> None:
    """The second claim's first look was before the first one's commit."""
    await engine.provide("probe", limit=1)
    first, second = await engine.submit_many(2)
    async with engine.holding(f"SELECT {named('claim_tasks')}($1, $2, 'worker-1', 30)", [first], [uuid4()]):
        late = asyncio.create_task(engine.claim(second))
        await engine.until_waiting(1)
    assert await late == Refused(second, Reason.PROVIDER_LIMIT)


@on_the_engine
async def test_ten_claimers_at_once_get_no_more_than_the_limit_of_three(engine: Engine) -> None:
    await engine.provide("probe", limit=3)
    for _ in range(5):
        waiting = await engine.submit_many(10)
        answers = await asyncio.gather(*(engine.claim(task_id) for task_id in waiting))
        assert len(granted(answers)) == 3
        assert reasons(answers) == [Reason.PROVIDER_LIMIT] * 7
        assert await engine.count("status = 'running'") == 3
        for attempt in granted(answers):
            await engine.finish(attempt)
        for task_id in waiting:
            await engine.cancel(task_id)


@on_the_engine
async def test_ten_claims_in_one_call_get_no_more_than_the_limit_by_priority(engine: Engine) -> None:
    await engine.provide("probe", limit=3)
    unimportant = await engine.submit_many(7, priority=5)
    important = await engine.submit_many(3, priority=1)
    claims = [Claim(task_id, uuid4()) for task_id in (*unimportant, *important)]
    answers = await tasks.claim(engine.pool, "worker-1", claims, 30)
    assert [answer.task_id for answer in answers] == [claim.task_id for claim in claims]
    assert {answer.task_id for answer in granted(answers)} == set(important)


@on_the_engine
async def test_one_provider_s_limit_is_not_another_s(engine: Engine) -> None:
    await engine.provide("narrow", limit=1)
    await engine.running(provider="narrow")
    waiting = await engine.submit(provider="narrow")
    assert await engine.claim(waiting) == Refused(waiting, Reason.PROVIDER_LIMIT)
    assert isinstance(await engine.claim(await engine.submit(provider="probe")), Claimed)


@on_the_engine
async def test_a_slot_freed_is_a_slot_that_can_be_taken(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    holder, waiting = await engine.running(), await engine.submit()
    assert await engine.claim(waiting) == Refused(waiting, Reason.PROVIDER_LIMIT)
    await engine.finish(holder)
    assert isinstance(await engine.claim(waiting), Claimed)


@on_the_engine
async def test_a_running_task_whose_lease_has_run_out_still_holds_its_slot(engine: Engine) -> None:
    """Its worker may still be at it; only a recorded transition frees the slot."""
    await engine.provide("probe", limit=1)
    holder, waiting = await engine.running(), await engine.submit()
    await engine.lapse(holder.task_id)
    assert await engine.claim(waiting) == Refused(waiting, Reason.PROVIDER_LIMIT)
    await tasks.stall(engine.pool)
    assert isinstance(await engine.claim(waiting), Claimed)


@on_the_engine
async def test_a_limit_of_zero_starts_nothing(engine: Engine) -> None:
    await engine.provide("probe", limit=0)
    task_id = await engine.submit()
    assert await engine.claim(task_id) == Refused(task_id, Reason.PROVIDER_LIMIT)


@on_the_engine
async def test_no_limit_starts_everything(engine: Engine) -> None:
    answers = await asyncio.gather(*(engine.claim(task_id) for task_id in await engine.submit_many(30)))
    assert len(granted(answers)) == 30


@on_the_engine
async def test_what_an_operator_has_set_counts_over_what_is_configured(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    await engine.sql("UPDATE providers SET limit_override = 2")
    answers = [await engine.claim(task_id) for task_id in await engine.submit_many(3)]
    assert len(granted(answers)) == 2


@on_the_engine
async def test_a_limit_set_while_claims_are_under_way_is_not_exceeded(engine: Engine) -> None:
    """The first claim found no limit and so locked no provider; the limit came before it looked for a slot."""
    early, late = await engine.submit_many(2)
    async with AsyncExitStack() as somebody:
        await somebody.enter_async_context(
            engine.holding("SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE", early)
        )
        first = asyncio.create_task(engine.claim(early))
        await engine.until_waiting(1)
        await engine.provide("probe", limit=1)
        async with engine.holding(f"SELECT {named('claim_tasks')}($1, $2, 'worker-2', 30)", [late], [uuid4()]):
            await somebody.aclose()
            await first
    assert await engine.count("status = 'running'") == 1


@on_the_engine
async def test_a_task_that_is_not_due_yet_is_refused(engine: Engine) -> None:
    task_id = await engine.submit()
    await engine.sql("UPDATE tasks SET available_at = clock_timestamp() + interval '1 h'")
    assert await engine.claim(task_id) == Refused(task_id, Reason.WAITING_FOR_TIME)
    assert await engine.status(task_id) == "queued"


@on_the_engine
async def test_a_task_that_waits_for_its_retry_is_not_started_early(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, "retry", delay_seconds=60)
    assert await engine.claim(attempt.task_id) == Refused(attempt.task_id, Reason.WAITING_FOR_TIME)
    await engine.become_due(attempt.task_id)
    again = await engine.claim(attempt.task_id)
    assert isinstance(again, Claimed)
    assert (again.attempt, again.retry_count) == (2, 1)


@on_the_engine
async def test_a_task_that_has_grown_too_old_is_refused(engine: Engine) -> None:
    task_id = await engine.submit(max_age_seconds=60)
    await engine.outlive(task_id)
    assert await engine.claim(task_id) == Refused(task_id, Reason.FINISHED)


@on_the_engine
async def test_an_unknown_task_is_refused(engine: Engine) -> None:
    nobody = uuid4()
    assert await engine.claim(nobody) == Refused(nobody, Reason.UNKNOWN)


@on_the_engine
async def test_a_task_that_does_not_wait_is_refused(engine: Engine) -> None:
    parent = await engine.submit()
    blocked = await engine.submit(depends_on=[parent])
    cancelled = await engine.submit()
    await engine.cancel(cancelled)
    for task_id in (blocked, cancelled, await engine.completed(), await engine.dead()):
        before = await engine.row(task_id)
        reason = Reason.WAITING_FOR_DEPENDENCIES if task_id == blocked else Reason.FINISHED
        assert await engine.claim(task_id) == Refused(task_id, reason)
        assert await engine.row(task_id) == before


@on_the_engine
async def test_a_task_that_is_claimed_twice_in_one_call_starts_once(engine: Engine) -> None:
    task_id = await engine.submit()
    claims = [Claim(task_id, uuid4()), Claim(task_id, uuid4())]
    answers = await tasks.claim(engine.pool, "worker-1", claims, 30)
    assert len(granted(answers)) == 1
    assert reasons(answers) == [Reason.RUNNING]
    assert await engine.story(task_id) == ["submit", "claim"]


@on_the_engine
async def test_a_later_attempt_gets_what_an_earlier_one_saved_and_counted(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.say(attempt, checkpoint={"page": 7}, progress={"message": "page 7"})
    await engine.finish(attempt, "interrupt")
    again = await engine.start(attempt.task_id)
    assert (again.checkpoint, again.attempt, again.interrupt_count, again.retry_count) == ({"page": 7}, 2, 1, 0)
    assert (await engine.row(attempt.task_id))["progress"] is None, "an attempt begins with nothing said"
