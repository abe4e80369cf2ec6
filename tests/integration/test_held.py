"""Waiting tasks that stand still for a reason: nobody starts them, and nothing is lost by it."""

from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from tests.support.engine.dispatching import look, seconds_to_next_look, start_next, would_start
from tests.support.engine.flow import serve
from tests.support.engine.store import Engine, on_the_engine
from windlass.services.api.access.auth import Caller
from windlass.services.api.tasks.why import explanation_of
from windlass.services.janitor.duties.expired import bury_expired
from windlass.shared.holds import Hold
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.operating import queues, reconciliation
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import Refused

ANN = Caller(key_id="k", user_id="ann", role="user")


async def hold(engine: Engine, *task_ids: UUID, reason: Hold = Hold.WORKFLOW) -> set[UUID]:
    return await tasks.hold(engine.pool, task_ids, reason)


async def release(engine: Engine, *task_ids: UUID, reason: Hold = Hold.WORKFLOW) -> set[UUID]:
    return await tasks.release(engine.pool, task_ids, reason)


async def held_for(engine: Engine, task_id: UUID, seconds: float) -> None:
    """It has stood still for so long."""
    await engine.sql(
        "UPDATE tasks SET held_at = held_at - make_interval(secs => $2) WHERE task_id = $1", task_id, seconds
    )


async def when(engine: Engine, task_id: UUID) -> tuple[datetime | None, list[str], datetime | None]:
    row = await engine.row(task_id)
    return row.available_at, row.held, row.due_at


async def due_at_infinity(engine: Engine, task_id: UUID) -> bool:
    return bool(await engine.pool.fetchval("SELECT available_at = 'infinity' FROM tasks WHERE task_id = $1", task_id))


@on_the_engine
async def test_a_task_is_held_for_several_reasons_and_goes_on_without_any(engine: Engine) -> None:
    task_id = await engine.submit()
    before = await engine.row(task_id)
    assert await hold(engine, task_id) == {task_id}
    assert await hold(engine, task_id) == set(), "once is enough"
    assert await hold(engine, task_id, reason=Hold.KEY) == {task_id}
    row = await engine.row(task_id)
    assert (row.held, row.due_at, row.status) == (["workflow", "key"], before.available_at, "queued")
    assert await due_at_infinity(engine, task_id)
    assert await release(engine, task_id, reason=Hold.ENDPOINT) == set()
    assert await release(engine, task_id) == {task_id}
    assert await due_at_infinity(engine, task_id)
    async with engine.listening("windlass_dispatch") as calls:
        assert await release(engine, task_id, reason=Hold.KEY) == {task_id}
    assert calls == ["probe"], "the dispatcher is woken"
    row = await engine.row(task_id)
    assert (row.held, row.due_at, row.held_at, row.available_at) == ([], None, None, before.available_at)
    events = [(event.type, event.data) for event in await engine.history(task_id)][1:]
    assert events == [
        ("hold", {"status": "queued", "reason": "workflow", "held": ["workflow"]}),
        ("hold", {"status": "queued", "reason": "key", "held": ["workflow", "key"]}),
        ("release", {"status": "queued", "reason": "workflow", "held": ["key"]}),
        ("release", {"status": "queued", "reason": "key", "held": []}),
    ]
    await engine.start(task_id)


@on_the_engine
async def test_only_what_waits_without_an_open_job_is_held(engine: Engine) -> None:
    attempt = await engine.running()
    open_job = await engine.running()
    await engine.sql("UPDATE tasks SET job_open = true WHERE task_id = $1", open_job.task_id)
    await engine.finish(open_job, "retry")
    unholdable = [attempt.task_id, open_job.task_id, await engine.completed(), await engine.dead(), uuid4()]
    blocked = await engine.submit(depends_on=[attempt.task_id])
    again = await engine.running()
    await engine.finish(again, "retry", delay_seconds=60)
    due_at = (await engine.row(again.task_id)).available_at
    assert await hold(engine, *unholdable, blocked, again.task_id) == {blocked, again.task_id}
    await release(engine, again.task_id)
    assert (await engine.row(again.task_id)).available_at == due_at


@on_the_engine
async def test_nobody_rings_for_claims_or_wants_a_worker_for_what_is_held(engine: Engine) -> None:
    await serve(engine)
    fresh, again = await engine.submit(), await engine.running()
    await engine.finish(again, "retry")
    held = [fresh, again.task_id]
    demand = "SELECT coalesce(sum(wanted), 0)::int FROM scale_demand"
    assert await engine.pool.fetchval(demand) == 2
    await hold(engine, *held)
    assert await engine.pool.fetchval(demand) == 0
    other = await engine.submit()
    view = await look(engine)
    assert (view.fresh_due, view.retry_due) == (1, 0)
    assert await would_start(engine) == [other]
    for each in held:
        assert await engine.claim(each) == Refused(each, Reason.WORKFLOW_ESCALATED)
    await engine.start(other)
    assert await seconds_to_next_look(engine) is None, "nothing becomes due by itself"
    await release(engine, *held)
    assert await engine.pool.fetchval(demand) == 3
    assert set(await would_start(engine)) == set(held)


@on_the_engine
async def test_one_that_is_held_lets_the_next_go_before(engine: Engine) -> None:
    await serve(engine)
    await engine.provide("probe", limit=1)
    first, second = await engine.submit_many(2)
    assert await would_start(engine) == [first]
    async with engine.listening("windlass_dispatch") as calls:
        await hold(engine, first)
    assert calls
    assert await would_start(engine) == [second]
    assert await engine.claim(first) == Refused(first, Reason.WORKFLOW_ESCALATED)


@on_the_engine
async def test_one_that_is_just_being_held_is_not_started(engine: Engine) -> None:
    await serve(engine)
    task_id = await engine.submit()
    async with engine.holding(f"SELECT {named('hold_tasks')}(ARRAY[$1::uuid], 'key')", task_id):
        assert await start_next(engine) == []
    assert await start_next(engine) == []
    assert await engine.status(task_id) == "queued"


@on_the_engine
async def test_it_grows_no_older_while_it_is_held(engine: Engine) -> None:
    task_id = await engine.submit(max_age_seconds=60)
    before = await engine.row(task_id)
    await hold(engine, task_id)
    await engine.outlive(task_id)
    await bury_expired(engine.pool)
    assert await engine.status(task_id) == "queued"
    await engine.sql("UPDATE tasks SET expires_at = now() - interval '1000 s' WHERE task_id = $1", task_id)
    found = await reconciliation.count_unaccounted(engine.pool, after_seconds=60, heard_within_seconds=30)
    assert set(found.values()) == {0}
    assert before.expires_at is not None
    await engine.sql("UPDATE tasks SET expires_at = $2 WHERE task_id = $1", task_id, before.expires_at)
    await held_for(engine, task_id, 3600)
    await release(engine, task_id)
    moved = (await engine.row(task_id)).expires_at
    assert moved is not None
    assert timedelta(hours=1) <= moved - before.expires_at < timedelta(hours=1, minutes=1)


@on_the_engine
async def test_what_is_blocked_is_held_too_and_no_parent_lets_it_go(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent])
    await hold(engine, child)
    await engine.finish(await engine.start(parent))
    row = await engine.row(child)
    assert (row.status, row.held) == ("queued", ["workflow"])
    assert await due_at_infinity(engine, child)
    await release(engine, child)
    await engine.start(child)


@pytest.mark.parametrize("end", ["cancel", "a parent that failed"])
@on_the_engine
async def test_an_end_lets_go(engine: Engine, end: str) -> None:
    parent = await engine.submit()
    task_id = await engine.submit(depends_on=[parent])
    before = await engine.row(task_id)
    await hold(engine, task_id)
    await engine.cancel(task_id if end == "cancel" else parent)
    row = await engine.row(task_id)
    assert row.status == ("cancelled" if end == "cancel" else "dead")
    assert (row.held, row.due_at, row.held_at, row.available_at) == ([], None, None, before.available_at)
    await engine.revive(task_id if end == "cancel" else parent)
    assert await when(engine, task_id) == ((await engine.row(task_id)).available_at, [], None)
    assert not await due_at_infinity(engine, task_id)


@on_the_engine
async def test_figures_count_it_as_waiting_for_its_time(engine: Engine) -> None:
    """Of one user's, looked at one by one, and of everybody's."""
    held, again = await engine.submit(), await engine.running()
    await engine.finish(again, "retry")
    await engine.submit()
    await hold(engine, held, again.task_id)
    for user_id in ("ann", None):
        for looked_at in (5000, 1):
            (row,), states = await queues.status(
                engine.pool, user_id=user_id, heard_within_seconds=30, looked_at=looked_at
            )
            assert (row.scheduled, row.fresh, row.retry) == (2, 1, 0)
            assert (states["queued"], states["retrying"]) == (2, 1)
            assert row.oldest_age_seconds is not None
            assert row.oldest_age_seconds < 60


async def reason(engine: Engine, task: TaskRow) -> str:
    said = await explanation_of(engine.pool, task, ANN, Settings())
    assert isinstance(said["message"], str)
    return str(said["reason"])


@on_the_engine
async def test_why_says_who_holds_it(engine: Engine) -> None:
    task_id = await engine.submit(max_age_seconds=60, delay_seconds=30)
    for hold_for, said in (
        (Hold.ENDPOINT, "waiting-for-time"),
        (Hold.KEY, "key-limit"),
        (Hold.WORKFLOW, "workflow-escalated"),
    ):
        await hold(engine, task_id, reason=hold_for)
        assert await reason(engine, await engine.row(task_id)) == said, "what a person may have to do comes first"
    await engine.outlive(task_id)
    whole = await explanation_of(engine.pool, await engine.row(task_id), ANN, Settings())
    assert whole["reason"] == "workflow-escalated"
    assert whole["details"]["held"] == ["endpoint", "key", "workflow"]
    blocked = await engine.submit(depends_on=[task_id])
    await hold(engine, blocked)
    assert await reason(engine, await engine.row(blocked)) == "waiting-for-dependencies"
