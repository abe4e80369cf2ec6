"""The figures of the queues: right by hand, of one snapshot under load, and exact however ends are folded."""

import asyncio
from uuid import UUID

import pytest
from asyncpg import Record as Row

from tests.support.engine.store import Engine, on_the_engine
from windlass.services.api.operators.queue_figures import QueueFigures
from windlass.shared.settings import Settings
from windlass.shared.store.functions import named
from windlass.shared.store.operating import queues, workers


async def queue_of(engine: Engine, provider: str, user_id: str | None = None) -> Row:
    rows, _ = await queues.status(engine.pool, user_id=user_id, heard_within_seconds=30)
    return next(row for row in rows if row["provider"] == provider)


async def states(engine: Engine, user_id: str | None = None) -> dict[str, int]:
    _, counted = await queues.status(engine.pool, user_id=user_id, heard_within_seconds=30)
    return counted


@on_the_engine
async def test_a_queue_s_figures(engine: Engine) -> None:
    await engine.provide("idle", limit=1)
    first = await engine.submit()
    await engine.submit_many(2)
    await engine.submit(delay_seconds=60)
    await engine.submit(depends_on=[first])
    await engine.running()
    await engine.finish(await engine.running(), "retry", delay_seconds=60)
    retried = await engine.running()
    await engine.finish(retried, "retry")
    await engine.become_due(retried.task_id)
    await engine.dead()
    await engine.completed()
    await engine.sql("UPDATE tasks SET available_at = available_at - interval '90 s' WHERE task_id = $1", first)
    await workers.register(engine.pool, "w1", hostname="h", pid=1, queues=["probe.probe", "probe.idle"], capacity=8)
    await workers.register(engine.pool, "w2", hostname="h", pid=2, queues=["probe.probe"], capacity=8)
    await workers.leave(engine.pool, "w2", state="stopped", reason="told to")

    row = await queue_of(engine, "probe")
    figures = {name: row[name] for name in ("fresh", "retry", "scheduled", "blocked", "running", "dead", "workers")}
    assert figures == {"fresh": 3, "retry": 1, "scheduled": 2, "blocked": 1, "running": 1, "dead": 1, "workers": 1}
    assert (row["queue"], row["actor"]) == ("probe.probe", "probe")
    assert 90 <= row["oldest_age_seconds"] < 150
    idle = await queue_of(engine, "idle")
    assert (idle["fresh"], idle["oldest_age_seconds"], idle["workers"]) == (0, None, 1)
    assert await states(engine) == {
        "blocked": 1, "queued": 4, "running": 1, "retrying": 2, "completed": 1, "dead": 1, "cancelled": 0,
    }  # fmt: skip


@on_the_engine
async def test_only_figures_that_are_dear_to_count_are_believed_for_a_while(engine: Engine) -> None:
    figures = QueueFigures(Settings(), engine.pool, believed_seconds=600, looked_at=3)

    async def counted(user_id: str | None = None) -> int:
        _, states = await figures.of(user_id)
        return states["queued"]

    await engine.submit_many(4, user_id="ann")
    assert await counted() == 4
    await engine.submit_many(2, user_id="ann", delay_seconds=60)
    assert await counted() == 6, "few are scheduled: it is counted anew"
    await engine.submit(user_id="ann", delay_seconds=60)
    assert await counted() == 7
    await engine.submit_many(2, user_id="ann")
    assert await counted() == 7, "three and more are due, and as many scheduled"
    assert await counted("ann") == 9, "nobody is told what was counted for another"
    assert await counted("bob") == 0


@on_the_engine
async def test_a_user_is_told_of_his_own_tasks(engine: Engine) -> None:
    for user_id, number in (("ann", 2), ("bob", 3)):
        await engine.submit_many(number, user_id=user_id)
        for _ in range(number):
            await engine.dead(user_id=user_id)
    await queues.fold_tallies(engine.pool)
    await engine.dead(user_id="ann")
    assert {state: number for state, number in (await states(engine, "ann")).items() if number} == {
        "queued": 2,
        "dead": 3,
    }
    assert (await queue_of(engine, "probe", "bob"))["dead"] == 3
    assert (await queue_of(engine, "probe", "nobody"))["dead"] == 0
    assert (await states(engine))["dead"] == 6


@pytest.mark.parametrize(("due", "scheduled"), [(7, 3), (3, 7), (5, 5)])
@on_the_engine
async def test_of_two_long_ranges_one_is_counted_whole(engine: Engine, due: int, scheduled: int) -> None:
    """Whichever it is, whoever asks, and whether the tallies are folded or not."""
    for user_id in ("ann", "bob"):
        for priority in (0, 2):
            await engine.submit_many(due, user_id=user_id, priority=priority)
            await engine.submit_many(scheduled, user_id=user_id, priority=priority, delay_seconds=60)
    for _ in range(2):
        for of_user, share in ((None, 4), ("ann", 2)):
            (row,), _states = await queues.status(engine.pool, user_id=of_user, heard_within_seconds=30, looked_at=1)
            assert (row["fresh"], row["scheduled"], row["queued"]) == (
                due * share,
                scheduled * share,
                (due + scheduled) * share,
            )
        await queues.fold_tallies(engine.pool)


@on_the_engine
async def test_every_way_into_and_out_of_an_end_is_tallied(engine: Engine) -> None:
    parent = await engine.submit()
    await engine.submit(depends_on=[parent])
    await engine.cancel(parent)
    await engine.submit(depends_on=[parent])
    assert (await states(engine))["dead"] == 2, "one buried with its parent, one submitted to a failed parent"
    old = await engine.submit(max_age_seconds=60)
    await engine.outlive(old)
    assert await engine.pool.fetchval(f"SELECT count(*) FROM {named('expire_tasks')}(10)") == 1
    attempt = await engine.running(max_retries=0)
    await engine.lapse(attempt.task_id)
    await engine.pool.fetch(f"SELECT * FROM {named('stall_tasks')}(0, '{{}}', '{{}}', '{{0}}', 10, NULL, NULL, 1)")
    assert {name: number for name, number in (await states(engine)).items() if number} == {"cancelled": 1, "dead": 4}
    await queues.fold_tallies(engine.pool)
    await engine.revive(parent)
    await engine.revive(parent)
    assert {name: number for name, number in (await states(engine)).items() if number} == {
        "queued": 1,
        "blocked": 2,
        "dead": 2,
    }


@on_the_engine
async def test_a_reader_finds_every_end_once_while_others_end_tasks_and_fold(engine: Engine) -> None:
    attempts = [await engine.running(user_id=f"user-{number % 3}") for number in range(40)]
    before = await engine.submit_many(1)
    done = asyncio.Event()

    async def end_them() -> None:
        for attempt in attempts:
            await engine.finish(attempt)
        done.set()

    async def fold() -> None:
        while not done.is_set():
            await queues.fold_tallies(engine.pool)

    async def read() -> None:
        while not done.is_set():
            counted = await states(engine)
            assert counted["running"] + counted["completed"] == 40, counted

    async with asyncio.TaskGroup() as group:
        for part in (end_them(), fold(), fold(), read(), read()):
            group.create_task(part)
    await queues.fold_tallies(engine.pool)
    assert await engine.pool.fetchval("SELECT count(*) FROM task_tallies") == 0
    assert (await states(engine))["completed"] == 40
    assert [(await states(engine, f"user-{number}"))["completed"] for number in range(3)] == [14, 13, 13]
    assert await engine.status(before[0]) == "queued"


@on_the_engine
async def test_folding_adds_to_what_was_folded_before(engine: Engine) -> None:
    ids: list[UUID] = []
    for _ in range(3):
        ids.append(await engine.dead())
        await queues.fold_tallies(engine.pool)
    await engine.revive(ids[0])
    await queues.fold_tallies(engine.pool)
    rows = await engine.pool.fetch(
        "SELECT user_id, status, tasks FROM task_counts WHERE status = 'dead' ORDER BY user_id"
    )
    assert [tuple(row) for row in rows] == [("", "dead", 2), ("ann", "dead", 2)]
