"""Waiting is not failing: whatever a task waits for, no retry is used up and it runs in the end."""

from collections.abc import Awaitable, Callable

import pytest

from tests.support.engine.flow import change, let_the_time_pass, open_the_breaker, pause, refusal
from tests.support.engine.store import RULES, Engine, on_the_engine
from windlass.services.actors.worker.ending.retries import ending_of_interrupt
from windlass.shared.reasons import Reason
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Refused

Step = Callable[[Engine], Awaitable[object]]


async def fill_the_slots(engine: Engine) -> None:
    await change(engine, limit=1)
    await engine.running(worker="holder")


async def free_the_slots(engine: Engine) -> None:
    await engine.sql("UPDATE tasks SET lease_expires_at = now() WHERE worker_id = 'holder'")
    await tasks.stall(engine.pool)


async def try_and_let_it_pass(engine: Engine) -> None:
    await let_the_time_pass(engine)
    await engine.completed()


KINDS: dict[str, tuple[Reason, Step, Step]] = {
    "a full provider": (Reason.PROVIDER_LIMIT, fill_the_slots, free_the_slots),
    "a limit of zero": (Reason.PROVIDER_LIMIT, lambda e: change(e, limit=0), lambda e: change(e, limit=None)),
    "an operator's pause": (Reason.PROVIDER_PAUSED, lambda e: change(e, paused=True), lambda e: change(e, paused=None)),
    "a rate limit": (Reason.RATE_LIMITED_UNTIL, pause, try_and_let_it_pass),
    "an open breaker": (Reason.BREAKER_OPEN, open_the_breaker, try_and_let_it_pass),
    "an operator's breaker": (
        Reason.BREAKER_OPEN,
        lambda e: change(e, breaker="open"),
        lambda e: change(e, breaker=None),
    ),
}


@pytest.mark.parametrize("kind", KINDS)
@on_the_engine
async def test_waiting_for_it_uses_up_no_retry(engine: Engine, kind: str) -> None:
    why, begin, end = KINDS[kind]
    task_id = await engine.submit(max_retries=0)
    await begin(engine)
    for _ in range(5):
        assert await engine.claim(task_id) == Refused(task_id, why)
    await end(engine)
    attempt = await engine.start(task_id)
    assert (attempt.attempt, attempt.retry_count, attempt.rate_limited_count, attempt.stall_count) == (1, 0, 0, 0)
    assert await engine.finish(attempt) == "completed"
    assert await engine.story(task_id) == ["submit", "claim", "complete"]


@on_the_engine
async def test_waiting_for_the_trial_of_another_uses_up_no_retry(engine: Engine) -> None:
    task_id = await engine.submit(max_retries=0)
    await pause(engine)
    await let_the_time_pass(engine)
    trial = await engine.running()
    assert await refusal(engine) == Reason.ON_TRIAL
    assert await engine.claim(task_id) == Refused(task_id, Reason.ON_TRIAL)
    await engine.finish(trial)
    assert (await engine.start(task_id)).retry_count == 0


@on_the_engine
async def test_being_told_429_oneself_uses_up_no_retry(engine: Engine) -> None:
    task_id = await pause(engine)
    await let_the_time_pass(engine)
    attempt = await engine.start(task_id)
    assert (attempt.attempt, attempt.retry_count) == (2, 0)


@on_the_engine
async def test_waiting_for_a_worker_uses_up_no_retry(engine: Engine) -> None:
    """Nobody serves the queue: it is rung for, and rung for again, until somebody answers."""
    task_id = await engine.submit(max_retries=0)
    await engine.sql("UPDATE tasks SET created_at = now() - interval '1 day', available_at = now() - interval '1 day'")
    assert await tasks.expire(engine.pool) == []
    assert await tasks.stall(engine.pool) == []
    assert (await engine.start(task_id)).retry_count == 0


@on_the_engine
async def test_the_shutdown_of_its_worker_uses_up_no_retry(engine: Engine) -> None:
    attempt = await engine.running(max_retries=0)
    assert await tasks.end(engine.pool, [ending_of_interrupt(attempt)], RULES) == ["queued"]
    again = await engine.start(attempt.task_id)
    assert (again.attempt, again.retry_count) == (2, 0)
