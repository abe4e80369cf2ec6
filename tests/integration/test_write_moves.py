"""Every move of a task writes its rows for the features that are subscribed, in the transaction of the move."""

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from tests.integration.test_project_plain_ends import CALLED, END
from tests.support.engine.store import ENDS, RULES, Engine, an_ending, on_the_engine
from tests.support.engine.webhooks import ready, told_of
from tests.support.engine.workflows import a_workflow, in_a_workflow
from windlass.shared import db
from windlass.shared.concerns import Concern
from windlass.shared.filters import Filter
from windlass.shared.store import tasks
from windlass.shared.store.tasks import bulk

MEMORY = Concern.MEMORY.value
Moves = list[tuple[str, str]]


async def moves_of(engine: Engine, task_id: UUID, feature: str = "memory") -> Moves:
    rows = await engine.pool.fetch(
        "SELECT move, status FROM outbox WHERE task_id = $1 AND feature = $2 ORDER BY id", task_id, feature
    )
    return [(row["move"], row["status"]) for row in rows]


@on_the_engine
async def test_every_way_out_of_running_writes_a_row(engine: Engine) -> None:
    for transition, status in ENDS:
        attempt = await engine.running(concerns=MEMORY)
        await engine.finish(attempt, transition)
        assert await moves_of(engine, attempt.task_id) == [(transition, status)]
    cancelled = await engine.running(concerns=MEMORY)
    await engine.cancel(cancelled.task_id)
    assert await moves_of(engine, cancelled.task_id) == [], "the cancel was only requested"
    await engine.finish(cancelled, "interrupt")
    assert await moves_of(engine, cancelled.task_id) == [("cancel", "cancelled")]
    lost, lost_and_cancelled = [await engine.running(concerns=MEMORY) for _ in range(2)]
    await engine.cancel(lost_and_cancelled.task_id)
    for attempt in (lost, lost_and_cancelled):
        await engine.lapse(attempt.task_id)
    await tasks.stall(engine.pool)
    assert await moves_of(engine, lost.task_id) == [("stall", "retrying")]
    assert await moves_of(engine, lost_and_cancelled.task_id) == [("cancel", "cancelled")]


@on_the_engine
async def test_every_other_end_and_every_new_life_writes_a_row(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent], concerns=MEMORY)
    grandchild = await engine.submit(depends_on=[child], concerns=MEMORY)
    await engine.cancel(parent)
    assert await moves_of(engine, child) == await moves_of(engine, grandchild) == [("bury", "dead")]
    assert await moves_of(engine, parent) == [], "it has no subscription"
    await engine.revive(parent)
    assert await moves_of(engine, child) == [("bury", "dead"), ("revive", "blocked")]
    lives = await engine.pool.fetch("SELECT life FROM outbox WHERE task_id = $1 ORDER BY id", child)
    assert [row["life"] for row in lives] == [1, 2]

    late = await engine.submit(depends_on=[await engine.dead()], concerns=MEMORY)
    assert await moves_of(engine, late) == [("bury", "dead")]
    old = await engine.submit(concerns=MEMORY)
    await engine.outlive(old)
    await tasks.expire(engine.pool)
    assert await moves_of(engine, old) == [("bury", "dead")]
    ids = await engine.submit_many(3, concerns=MEMORY)
    job = await bulk.accept(engine.pool, ids[0], "cancel", Filter(), matched=3, user_id="ann", scope_user_id=None)
    assert await bulk.advance(engine.pool, job, await bulk.next_chunk(engine.pool, job)) is not None
    for each in ids:
        assert await moves_of(engine, each) == [("cancel", "cancelled")]


@on_the_engine
async def test_a_row_has_the_number_and_time_of_its_event(engine: Engine) -> None:
    attempt = await engine.running(concerns=MEMORY)
    await engine.finish(attempt, events=[{"type": "output", "data": {"text": "bye"}}])
    (row,) = await engine.pool.fetch("SELECT seq, move, at FROM outbox")
    event = (await engine.history(attempt.task_id))[-1]
    assert (row["seq"], row["move"], row["at"]) == (event.seq, event.type, event.at)


@on_the_engine
async def test_several_moves_of_one_call_reach_each_of_their_subscribers_in_order(engine: Engine) -> None:
    await ready(engine)
    keys = [f"t{number}" for number in range(5)]
    fields = {key: {"concerns": MEMORY} for key in keys}
    flow = await a_workflow(engine, {key: [] for key in keys}, fields=fields)
    attempts = [await flow.start(key) for key in keys]
    plain = [await engine.running(**told_of()) for _ in range(2)]
    await tasks.end(engine.pool, [an_ending(each, "bury") for each in [*plain, *reversed(attempts)]], RULES)
    rows = await engine.pool.fetch("SELECT feature, subject, task_id FROM outbox ORDER BY id")
    ids = sorted(flow.ids.values())
    assert sorted({row["feature"] for row in rows}) == ["memory", "workflow"]
    assert [(row["task_id"], row["subject"]) for row in rows if row["feature"] == "memory"] == [(x, x) for x in ids]
    of_workflow = [(row["task_id"], row["subject"]) for row in rows if row["feature"] == "workflow"]
    assert of_workflow == [(each, flow.workflow_id) for each in ids]
    failures = await engine.pool.fetch("SELECT task_id, life FROM group_failures ORDER BY task_id")
    assert [tuple(row) for row in failures] == [(each, 1) for each in ids]


@on_the_engine
async def test_a_submit_into_a_workflow_writes_a_row_and_the_submit_of_the_workflow_none(engine: Engine) -> None:
    flow = await a_workflow(engine, {"first": []})
    assert await moves_of(engine, flow.ids["first"], "workflow") == []
    (late,) = await tasks.submit(engine.pool, [in_a_workflow(flow.workflow_id)])
    assert await moves_of(engine, late.task_id, "workflow") == [("submit", "queued")]
    assert (await flow.row()).total == 2


async def calls_of_an_end(engine: Engine, *transitions: str, group: bool) -> set[str]:
    """The functions that ends of several tasks in one call use. The call is rolled back."""
    if group:
        flow = await a_workflow(engine, {transition: [] for transition in transitions})
        attempts = [await flow.start(transition) for transition in transitions]
    else:
        attempts = [await engine.running() for _ in transitions]
    endings = [an_ending(*each) for each in zip(attempts, transitions, strict=True)]
    return await _called(engine, endings)


async def _called(engine: Engine, endings: Sequence[object]) -> set[str]:
    connection = await asyncpg.connect(engine.database_url, server_settings={"track_functions": "all"})
    try:
        transaction = connection.transaction()
        await transaction.start()
        await connection.fetch(END, db.as_json(endings), db.as_json(RULES))
        called = {row["funcname"] for row in await connection.fetch(CALLED)}
        await transaction.rollback()
        return called
    finally:
        await connection.close()


@on_the_engine
async def test_only_moves_with_a_subscriber_and_failures_of_groups_cost_a_call(engine: Engine) -> None:
    own = {"write_moves", "write_outbox", "record_failures"}
    assert own & await calls_of_an_end(engine, "complete", "bury", group=False) == set()
    assert own & await calls_of_an_end(engine, "complete", group=True) == {"write_moves", "write_outbox"}
    assert own & await calls_of_an_end(engine, "complete", "bury", group=True) == own
