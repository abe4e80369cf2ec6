"""Cancels: at once while a task waits, and once its work has stopped while it runs."""

import pytest

from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.store import tasks

CANCELLED = [("retry", "cancelled"), ("bury", "cancelled"), ("interrupt", "cancelled"), ("complete", "completed")]


@pytest.mark.parametrize(("transition", "status"), CANCELLED)
@on_the_engine
async def test_with_a_cancel_requested_every_end_but_completion_is_a_cancellation(
    engine: Engine, transition: str, status: str
) -> None:
    attempt = await engine.running()
    assert await engine.cancel(attempt.task_id) == "running", "it is cancelled when the work has stopped"
    assert await engine.finish(attempt, transition) == status
    row = await engine.row(attempt.task_id)
    assert row["completed_at"] is not None
    last = "complete" if transition == "complete" else "cancel"
    assert await engine.story(attempt.task_id) == ["submit", "claim", "cancel-requested", last]


@on_the_engine
async def test_with_a_cancel_requested_a_stall_is_a_cancellation(engine: Engine) -> None:
    attempt = await engine.running()
    await engine.cancel(attempt.task_id)
    await engine.lapse(attempt.task_id)
    (row,) = await tasks.stall(engine.pool)
    assert row["status"] == "cancelled"
    assert await engine.story(attempt.task_id) == ["submit", "claim", "cancel-requested", "cancel"]


@pytest.mark.parametrize("state", ["queued", "blocked", "retrying"])
@on_the_engine
async def test_a_waiting_task_is_cancelled_at_once(engine: Engine, state: str) -> None:
    task_id = await engine.submit()
    if state == "blocked":
        task_id = await engine.submit(depends_on=[task_id])
    if state == "retrying":
        await engine.finish(await engine.start(task_id), "retry")
    assert await engine.status(task_id) == state
    assert await engine.cancel(task_id) == "cancelled"
    assert (await engine.story(task_id))[-1] == "cancel"


@on_the_engine
async def test_cancelling_twice_changes_nothing(engine: Engine) -> None:
    waiting, attempt = await engine.submit(), await engine.running()
    for task_id in (waiting, attempt.task_id):
        await engine.cancel(task_id)
        before = await engine.row(task_id)
        await engine.cancel(task_id)
        assert await engine.row(task_id) == before


@on_the_engine
async def test_what_has_ended_cannot_be_cancelled(engine: Engine) -> None:
    for task_id in (await engine.completed(), await engine.dead()):
        before = await engine.row(task_id)
        await engine.cancel(task_id)
        assert await engine.row(task_id) == before


@on_the_engine
async def test_a_cancel_tells_the_worker_that_runs_the_task(engine: Engine) -> None:
    attempt = await engine.running(worker="worker-7")
    async with engine.listening("windlass_cancel") as heard:
        await engine.cancel(attempt.task_id)
    assert heard == ["worker-7"]


@on_the_engine
async def test_cancelling_a_task_wakes_the_dispatcher(engine: Engine) -> None:
    """It may have had a place that somebody waits for."""
    task_id = await engine.submit()
    async with engine.listening("windlass_dispatch") as heard:
        await engine.cancel(task_id)
    assert heard == ["probe"]
