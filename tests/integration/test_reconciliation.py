"""The reconciler: finds every kind of task that nobody is going to move, and none where all is well."""

import pytest

from tests.support.engine.flow import change, let_the_time_pass, open_the_breaker, pause
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.janitor.duties.reconciler import count_unaccounted
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.operating import reconciliation, workers
from windlass.shared.store.tasks import dependencies

LATE = 60
NONE = {"janitor": 0, "dispatcher": 0, "dependencies": 0}


async def unaccounted(engine: Engine) -> dict[str, int]:
    return await reconciliation.count_unaccounted(engine.pool, after_seconds=LATE, heard_within_seconds=30)


async def age(engine: Engine, field: str, *, seconds: float = 2 * LATE) -> None:
    await engine.sql(
        f"UPDATE tasks SET {field} = clock_timestamp() - make_interval(secs => $1) WHERE {field} IS NOT NULL", seconds
    )


async def have_been_served(engine: Engine, *, capacity: int = 8) -> None:
    """Since long; and nothing has happened lately."""
    await workers.register(engine.pool, "idle", hostname="h", pid=1, queues=["probe.probe"], capacity=capacity)
    await engine.sql("UPDATE workers SET started_at = now() - interval '1 h'")
    await engine.sql("UPDATE provider_results SET at = at - interval '1 h'")


@on_the_engine
async def test_an_empty_system_has_none(engine: Engine) -> None:
    assert await unaccounted(engine) == NONE


@on_the_engine
async def test_a_busy_healthy_system_has_none(engine: Engine) -> None:
    await engine.completed()
    await engine.dead()
    await engine.cancel(await engine.submit())
    parent = await engine.submit(delay_seconds=3600)
    await engine.submit(depends_on=[parent])
    failed = await engine.running()
    await engine.finish(failed, "retry", delay_seconds=60)
    await engine.running(max_age_seconds=60)
    await engine.submit(max_age_seconds=60)
    await age(engine, "created_at")
    await age(engine, "updated_at")
    assert await unaccounted(engine) == NONE


@on_the_engine
async def test_a_lease_that_ran_out_long_ago_is_the_janitor_s(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.lapse(attempt.task_id, seconds_ago=LATE / 2)
    assert await unaccounted(engine) == NONE, "it has some time for it"
    await engine.lapse(attempt.task_id, seconds_ago=LATE + 10)
    assert await unaccounted(engine) == {**NONE, "janitor": 1}
    await tasks.stall(engine.pool)
    assert await unaccounted(engine) == NONE


@pytest.mark.parametrize("state", ["queued", "retrying", "blocked"])
@on_the_engine
async def test_a_waiting_task_that_expired_long_ago_is_the_janitor_s(engine: Engine, state: str) -> None:
    task_id = await engine.submit(max_age_seconds=3600)
    if state == "blocked":
        await engine.submit(depends_on=[task_id], max_age_seconds=3600)
        await engine.sql("UPDATE tasks SET expires_at = NULL WHERE task_id = $1", task_id)
    if state == "retrying":
        await engine.finish(await engine.start(task_id), "retry")
    await age(engine, "expires_at")
    assert await unaccounted(engine) == {**NONE, "janitor": 1}
    await tasks.expire(engine.pool)
    assert await unaccounted(engine) == NONE


@on_the_engine
async def test_a_due_task_that_was_not_started_though_somebody_is_idle_is_the_dispatcher_s(engine: Engine) -> None:
    task_id = await engine.submit()
    await age(engine, "available_at")
    assert await unaccounted(engine) == NONE, "nobody is there: health tells of that"
    await have_been_served(engine)
    assert await unaccounted(engine) == {**NONE, "dispatcher": 1}
    await engine.start(task_id)
    assert await unaccounted(engine) == NONE


@on_the_engine
async def test_a_due_task_that_waits_behind_others_is_nobody_s_fault(engine: Engine) -> None:
    await engine.submit_many(2)
    await age(engine, "available_at")
    await have_been_served(engine)
    attempt = await engine.running()
    assert await unaccounted(engine) == NONE, "one has just started"
    await engine.finish(attempt)
    assert await unaccounted(engine) == NONE, "and one has just ended"
    await have_been_served(engine)
    assert await unaccounted(engine) == {**NONE, "dispatcher": 2}


@on_the_engine
async def test_a_due_task_whose_workers_have_no_place_is_nobody_s_fault(engine: Engine) -> None:
    await have_been_served(engine, capacity=1)
    await engine.running(worker="idle")
    await engine.submit()
    await age(engine, "available_at")
    await age(engine, "started_at")
    assert await unaccounted(engine) == NONE


@on_the_engine
async def test_a_due_task_that_waits_for_a_full_provider_is_nobody_s_fault(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    attempt = await engine.running()
    await engine.submit()
    await age(engine, "available_at")
    assert await unaccounted(engine) == NONE
    await engine.finish(attempt)
    await have_been_served(engine)
    assert await unaccounted(engine) == {**NONE, "dispatcher": 1}


@on_the_engine
async def test_a_due_task_that_waits_for_the_slot_of_an_open_job_is_nobody_s_fault(engine: Engine) -> None:
    await engine.provide("probe", limit=1)
    ended = await engine.completed()
    await engine.sql("UPDATE tasks SET job_open = true WHERE task_id = $1", ended)
    await engine.submit()
    await age(engine, "available_at")
    assert await unaccounted(engine) == NONE
    await engine.sql("UPDATE tasks SET job_open = false")
    await have_been_served(engine)
    assert await unaccounted(engine) == {**NONE, "dispatcher": 1}


@on_the_engine
async def test_a_due_task_whose_slot_was_freed_a_moment_ago_is_not_told_of(engine: Engine) -> None:
    task_id = await engine.submit()
    await age(engine, "available_at", seconds=3600)
    await have_been_served(engine)

    async def started_meanwhile(_seconds: float) -> None:
        await engine.start(task_id)

    async def left_alone(_seconds: float) -> None:
        pass

    assert await count_unaccounted(engine.pool, Settings(), pause=left_alone) == 1
    assert await count_unaccounted(engine.pool, Settings(), pause=started_meanwhile) == 0


@on_the_engine
async def test_a_due_task_of_a_provider_that_starts_nothing_is_nobody_s_fault(engine: Engine) -> None:
    await engine.provide("probe", limit=0)
    await engine.submit()
    await age(engine, "available_at")
    assert await unaccounted(engine) == NONE


@pytest.mark.parametrize("wait", ["paused", "rate-limited", "breaker-open", "on-trial"])
@on_the_engine
async def test_a_due_task_that_waits_for_a_pause_a_breaker_or_a_trial_is_nobody_s_fault(
    engine: Engine, wait: str
) -> None:
    if wait == "paused":
        await change(engine, paused=True)
    if wait in {"rate-limited", "on-trial"}:
        await pause(engine)
    if wait == "breaker-open":
        await open_the_breaker(engine)
    if wait == "on-trial":
        await let_the_time_pass(engine)
        await engine.running()
    await engine.submit()
    await age(engine, "available_at")
    await engine.sql("UPDATE provider_events SET at = at - interval '1 h'")
    assert await unaccounted(engine) == NONE
    await change(engine, paused=False, breaker="closed")
    assert await unaccounted(engine) == NONE, "the dispatcher has some time for it"
    await engine.sql("UPDATE provider_events SET at = at - interval '1 h'")
    await engine.sql("UPDATE tasks SET started_at = started_at - interval '1 h'")
    await have_been_served(engine)
    assert (await unaccounted(engine))["dispatcher"] > 0


@pytest.mark.parametrize("fate", ["completed", "cancelled"])
@on_the_engine
async def test_a_child_that_still_waits_although_its_parents_have_ended_is_found(engine: Engine, fate: str) -> None:
    """Whether it should have been unblocked or buried, nothing is going to move it but the recheck."""
    parent = await engine.submit()
    await engine.submit(depends_on=[parent])
    await age(engine, "updated_at")
    assert await unaccounted(engine) == NONE
    await engine.sql("UPDATE tasks SET status = $2, completed_at = now() WHERE task_id = $1", parent, fate)
    assert await unaccounted(engine) == {**NONE, "dependencies": 1}
    await dependencies.recheck(engine.pool)
    assert await unaccounted(engine) == NONE
