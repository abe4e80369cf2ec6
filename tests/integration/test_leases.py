"""Leases: renewed while they last, and what becomes of a task whose worker let one run out."""

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.store import tasks
from windlass.shared.store.operating import workers
from windlass.shared.store.operating.looks import look
from windlass.shared.store.tasks import Claimed


async def lose_worker(engine: Engine, task_id: UUID) -> str:
    """Somebody takes the task, is never heard of again, and the sweep finds out."""
    await engine.become_due(task_id)
    await engine.start(task_id, alone=True)
    await engine.lapse(task_id)
    (row,) = await tasks.stall(engine.pool)
    assert row["task_id"] == task_id
    return str(row["status"])


@on_the_engine
async def test_a_heartbeat_renews_the_lease(engine: Engine) -> None:
    attempt = await engine.running()
    before = await engine.row(attempt.task_id)
    assert await engine.renew(attempt, lease_seconds=60) == [(True, False)]
    after = await engine.row(attempt.task_id)
    assert (after["lease_expires_at"] - after["heartbeat_at"]).total_seconds() == 60
    assert after["heartbeat_at"] > before["heartbeat_at"]
    assert after["last_seq"] == before["last_seq"], "a heartbeat is no event"


@on_the_engine
async def test_a_lease_that_has_run_out_cannot_be_renewed(engine: Engine) -> None:
    """Somebody may be about to take the task, so its worker has to believe that it is lost."""
    attempt = await engine.running()
    await engine.lapse(attempt.task_id)
    before = await engine.row(attempt.task_id)
    assert await engine.renew(attempt) == [(False, False)]
    assert await engine.row(attempt.task_id) == before


@on_the_engine
async def test_a_heartbeat_brings_back_what_is_to_be_cancelled(engine: Engine) -> None:
    attempt, other = await engine.running(), await engine.running()
    await engine.cancel(attempt.task_id)
    assert await engine.renew(attempt, other) == [(True, True), (True, False)]


@on_the_engine
async def test_a_heartbeat_of_many_tasks_is_answered_one_by_one(engine: Engine) -> None:
    attempts = [await engine.start(task_id) for task_id in await engine.submit_many(4)]
    await engine.finish(attempts[0])
    await engine.lapse(attempts[1].task_id)
    assert [owned for owned, _ in await engine.renew(*attempts)] == [False, False, True, True]


@on_the_engine
async def test_a_heartbeat_with_nothing_to_renew_says_that_the_worker_is_alive(engine: Engine) -> None:
    await workers.register(engine.pool, "worker-1", hostname="h", pid=1, queues=["probe.probe"], capacity=1)
    await engine.sql("UPDATE workers SET state = 'lost', heartbeat_at = clock_timestamp() - interval '1 h'")
    assert await workers.count_live(engine.pool, heard_within_seconds=30) == 0
    assert await workers.renew(engine.pool, "worker-1", {}, 30) == []
    assert await workers.count_live(engine.pool, heard_within_seconds=30) == 1


@on_the_engine
async def test_a_lease_that_lasts_is_left_alone(engine: Engine) -> None:
    attempt = await engine.running()
    before = await engine.row(attempt.task_id)
    assert await tasks.stall(engine.pool) == []
    assert await engine.row(attempt.task_id) == before


@on_the_engine
async def test_a_lease_that_ran_out_costs_a_retry_and_the_task_waits_again(engine: Engine) -> None:
    attempt = await engine.running(worker="worker-7")
    await engine.lapse(attempt.task_id)
    (found,) = await tasks.stall(engine.pool)
    assert (found["task_id"], found["status"], found["worker_id"]) == (attempt.task_id, "retrying", "worker-7")
    row = await engine.row(attempt.task_id)
    assert (row["status"], row["lane"], row["retry_count"], row["attempt"]) == ("retrying", "retry", 1, 1)
    assert (row["claim_token"], row["lease_expires_at"], row["completed_at"]) == (None, None, None)
    assert set(row["error"]) == {"type", "kind", "message", "details", "stack_trace", "attempt"}
    assert (row["error"]["type"], row["error"]["kind"]) == ("WorkerLost", "transient")
    assert "worker-7" in row["error"]["message"]
    event = (await engine.history(attempt.task_id))[-1]
    assert (event["type"], event["data"]) == ("stall", {"status": "retrying", "error": row["error"]})


@on_the_engine
async def test_a_sweep_that_was_held_up_on_its_way_judges_nobody(engine: Engine) -> None:
    """Postgres was frozen between the sweeper's last word from it and this call: nobody could renew meanwhile."""
    attempt = await engine.running()
    await engine.lapse(attempt.task_id)
    now = await engine.pool.fetchval("SELECT clock_timestamp()")
    late = now - timedelta(seconds=101)
    assert await tasks.stall(engine.pool, heard_at=late, patience_seconds=100) == []
    assert await engine.status(attempt.task_id) == "running"
    assert len(await tasks.stall(engine.pool, heard_at=now, patience_seconds=100)) == 1


@on_the_engine
async def test_the_first_time_it_is_tried_again_at_once_then_after_5_20_and_45_seconds(engine: Engine) -> None:
    task_id = await engine.submit(max_retries=6)
    for planned in (0, 5, 20, 45, 45):
        assert await lose_worker(engine, task_id) == "retrying"
        row = await engine.row(task_id)
        assert planned <= (row["available_at"] - row["updated_at"]).total_seconds() <= planned * 1.1


@on_the_engine
async def test_after_four_lost_workers_it_is_dead_and_says_so(engine: Engine) -> None:
    task_id = await engine.submit()
    assert [await lose_worker(engine, task_id) for _ in range(4)] == ["retrying"] * 3 + ["dead"]
    row = await engine.row(task_id)
    assert (row["attempt"], row["retry_count"], row["stall_count"]) == (4, 3, 4)
    assert (row["error"]["type"], row["error"]["details"]["retries_exhausted"]) == ("WorkerLost", True)
    assert row["completed_at"] is not None
    assert (await engine.story(task_id))[-1] == "stall"


@on_the_engine
async def test_several_sweepers_at_once_take_each_task_back_once(engine: Engine) -> None:
    lost = await engine.submit_many(60)
    for task_id in lost:
        await engine.start(task_id)
    await engine.lapse(*lost)
    sweeps = await asyncio.gather(*(tasks.stall(engine.pool, at_most=25) for _ in range(4)))
    rest = await tasks.stall(engine.pool)
    found = [row["task_id"] for sweep in (*sweeps, rest) for row in sweep]
    assert sorted(found) == sorted(lost)
    assert {tuple(await engine.story(task_id)) for task_id in lost} == {("submit", "claim", "stall")}
    assert await engine.count("retry_count <> 1") == 0


@on_the_engine
async def test_a_task_that_somebody_is_just_ending_is_left_to_them(engine: Engine) -> None:
    ending, lost = await engine.running(), await engine.running()
    await engine.lapse(ending.task_id, lost.task_id)
    async with engine.holding("SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE", ending.task_id):
        (row,) = await asyncio.wait_for(tasks.stall(engine.pool), 20)
    assert row["task_id"] == lost.task_id
    assert await engine.finish(ending) == "completed", "late, but nobody had taken it back"


@on_the_engine
async def test_a_sweep_can_be_told_how_long_a_lease_must_have_run_out(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.lapse(attempt.task_id, seconds_ago=10)
    assert await tasks.stall(engine.pool, expired_for_seconds=60) == []
    assert len(await tasks.stall(engine.pool, expired_for_seconds=5)) == 1


@on_the_engine
async def test_a_worker_that_is_proven_dead_loses_its_tasks_at_once_and_nobody_else_does(engine: Engine) -> None:
    lost, alive = await engine.running(worker="dead-1"), await engine.running(worker="alive-1")
    (row,) = await tasks.stall(engine.pool, dead_workers=["dead-1", "dead-2"])
    assert (row["task_id"], row["status"]) == (lost.task_id, "retrying")
    assert await engine.status(alive.task_id) == "running"
    assert isinstance(await engine.claim(lost.task_id), Claimed)


@on_the_engine
async def test_how_a_worker_was_ended_is_kept_with_the_attempts_that_it_had(engine: Engine) -> None:
    lost, cancelled = await engine.running(worker="dead-1"), await engine.running(worker="dead-1")
    await engine.cancel(cancelled.task_id)
    other = await engine.running(worker="dead-2")
    proof = {"by": "guardian", "signals": [{"signal": "SIGKILL", "pids": [7]}]}
    await tasks.stall(engine.pool, expired_for_seconds=None, dead_workers=["dead-2"], proofs={"dead-1": proof})
    ends = [(await engine.history(task_id))[-1] for task_id in (lost.task_id, cancelled.task_id, other.task_id)]
    assert [(end["type"], end["data"].get("proof")) for end in ends] == [
        ("stall", proof),
        ("cancel", proof),
        ("stall", None),
    ]


@on_the_engine
async def test_who_takes_back_from_a_dead_worker_alone_leaves_leases_that_ran_out_to_the_sweep(engine: Engine) -> None:
    """The sweep knows whether the living could renew lately; a worker that has just started does not."""
    lost, lapsed = await engine.running(worker="dead-1"), await engine.running(worker="alive-1")
    await engine.lapse(lapsed.task_id)
    (row,) = await tasks.stall(engine.pool, expired_for_seconds=None, dead_workers=["dead-1"])
    assert row["task_id"] == lost.task_id
    assert await engine.status(lapsed.task_id) == "running"


@on_the_engine
async def test_a_task_that_died_with_its_worker_buries_its_dependents(engine: Engine) -> None:
    parent = await engine.submit(max_retries=0)
    child = await engine.submit(depends_on=[parent])
    assert await lose_worker(engine, parent) == "dead"
    assert await engine.status(child) == "dead"


@on_the_engine
async def test_the_sweep_knows_when_the_next_lease_runs_out(engine: Engine) -> None:
    assert (await look(engine.pool)).lease_seconds is None
    await engine.start(await engine.submit(), lease_seconds=1000)
    await engine.start(await engine.submit(), lease_seconds=500)
    seconds = (await look(engine.pool)).lease_seconds
    assert seconds is not None
    assert 400 < seconds <= 500


@pytest.mark.parametrize("state", ["queued", "retrying", "blocked"])
@on_the_engine
async def test_a_waiting_task_that_has_grown_too_old_is_buried(engine: Engine, state: str) -> None:
    task_id = await engine.submit(max_age_seconds=60)
    if state == "blocked":
        task_id = await engine.submit(max_age_seconds=60, depends_on=[task_id])
    if state == "retrying":
        await engine.finish(await engine.start(task_id), "retry")
    assert await engine.status(task_id) == state
    await engine.outlive(task_id)
    assert [row["task_id"] for row in await tasks.expire(engine.pool)] == [task_id]
    row = await engine.row(task_id)
    assert (row["status"], row["error"]["type"], row["error"]["kind"]) == ("dead", "Expired", "permanent")
    assert set(row["error"]) == {"type", "kind", "message", "details", "stack_trace", "attempt"}
    assert "60" in row["error"]["message"]
    assert (await engine.story(task_id))[-1] == "bury"


@on_the_engine
async def test_a_task_that_runs_or_is_young_enough_is_not_buried(engine: Engine) -> None:
    await engine.submit(max_age_seconds=60)
    await engine.submit()
    attempt = await engine.running(max_age_seconds=60)
    await engine.outlive(attempt.task_id)
    assert await tasks.expire(engine.pool) == []
    assert await engine.finish(attempt) == "completed"


@on_the_engine
async def test_a_task_that_has_grown_too_old_buries_its_dependents(engine: Engine) -> None:
    parent = await engine.submit(max_age_seconds=60)
    child = await engine.submit(depends_on=[parent])
    await engine.outlive(parent)
    await tasks.expire(engine.pool)
    assert await engine.status(child) == "dead"


@on_the_engine
async def test_burying_a_task_wakes_the_dispatcher(engine: Engine) -> None:
    task_id = await engine.submit(max_age_seconds=60)
    await engine.outlive(task_id)
    async with engine.listening("windlass_dispatch") as heard:
        await tasks.expire(engine.pool)
    assert heard == ["probe"]


@on_the_engine
async def test_a_revived_task_gets_a_new_age_and_all_its_retries(engine: Engine) -> None:
    task_id = await engine.submit(max_age_seconds=60, max_retries=1)
    assert await lose_worker(engine, task_id) == "retrying"
    assert await lose_worker(engine, task_id) == "dead"
    assert await engine.revive(task_id) == "queued"
    row = await engine.row(task_id)
    assert (row["lane"], row["retry_count"], row["stall_count"], row["error"]) == ("retry", 0, 0, None)
    assert (row["expires_at"] - row["updated_at"]).total_seconds() == 60
    assert (await engine.start(task_id)).attempt == 3, "attempts go on counting"


@pytest.mark.parametrize("state", ["queued", "running", "completed"])
@on_the_engine
async def test_what_is_alive_or_completed_is_not_revived(engine: Engine, state: str) -> None:
    task_id = await engine.completed() if state == "completed" else await engine.submit()
    if state == "running":
        await engine.start(task_id)
    before = await engine.row(task_id)
    assert await engine.revive(task_id) == state
    assert await engine.row(task_id) == before


@on_the_engine
async def test_the_old_worker_of_a_revived_task_is_refused(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.finish(attempt, "bury")
    await engine.revive(attempt.task_id)
    assert await engine.finish(attempt) is None
    assert not await engine.say(attempt, checkpoint="late")
    assert await engine.status(attempt.task_id) == "queued"
