"""Dependencies: a child starts when its last parent has completed, dies with the first that fails, and comes back."""

import asyncio
import json
from uuid import UUID, uuid4

import pytest

from tests.support.engine.graphs import COMPLETE_IT, ROUNDS, complete
from tests.support.engine.store import RULES, Engine, a_submission, an_ending, on_the_engine
from windlass.shared.reasons import Reason
from windlass.shared.store import tasks
from windlass.shared.store.functions import named
from windlass.shared.store.tasks import Refused


@on_the_engine
async def test_a_child_waits_for_its_last_parent(engine: Engine) -> None:
    first, second = await engine.submit_many(2)
    child = await engine.submit(depends_on=[first, second])
    assert [(await engine.row(child))[field] for field in ("status", "unmet")] == ["blocked", 2]
    assert await engine.claim(child) == Refused(child, Reason.WAITING_FOR_DEPENDENCIES)
    await complete(engine, first)
    assert [(await engine.row(child))[field] for field in ("status", "unmet")] == ["blocked", 1]
    await complete(engine, second)
    assert [(await engine.row(child))[field] for field in ("status", "unmet")] == ["queued", 0]
    assert await engine.story(child) == ["submit", "unblock"]


@on_the_engine
async def test_a_child_whose_parents_have_completed_waits_for_nobody(engine: Engine) -> None:
    parent = await engine.completed()
    child = await engine.submit(depends_on=[parent])
    assert await engine.status(child) == "queued"
    assert await engine.story(child) == ["submit"]


@on_the_engine
async def test_a_parent_named_twice_counts_once(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent, parent])
    assert (await engine.row(child))["unmet"] == 1
    await complete(engine, parent)
    assert await engine.status(child) == "queued"


@on_the_engine
async def test_of_parents_in_the_same_call_and_of_others_each_is_counted_once(engine: Engine) -> None:
    over, buried, waiting = await engine.completed(), await engine.submit(), await engine.submit()
    await engine.finish(await engine.start(buried), "bury")
    beside = a_submission()
    child = a_submission(depends_on=[over, buried, waiting, beside.task_id], after_end=[buried])
    await tasks.submit_batch(engine.pool, [child, beside])
    assert [(await engine.row(child.task_id))[field] for field in ("status", "unmet")] == ["blocked", 2]
    await complete(engine, beside.task_id)
    await complete(engine, waiting)
    assert await engine.status(child.task_id) == "queued"


@on_the_engine
async def test_where_one_parent_is_unknown_nothing_of_the_call_is_stored(engine: Engine) -> None:
    beside = a_submission()
    child = a_submission(depends_on=[beside.task_id, nobody := uuid4()])
    with pytest.raises(tasks.UnknownDependency) as refused:
        await tasks.submit(engine.pool, [beside, child])
    assert str(nobody) in str(refused.value)
    assert await engine.count("true") == 0


@on_the_engine
async def test_parents_that_complete_at_the_same_moment_unblock_their_child_once(engine: Engine) -> None:
    for _ in range(ROUNDS):
        parents = await engine.submit_many(3)
        child = await engine.submit(depends_on=parents)
        attempts = [await engine.start(parent) for parent in parents]
        await asyncio.gather(*(engine.finish(attempt) for attempt in attempts))
        assert await engine.story(child) == ["submit", "unblock"]
        assert await engine.status(child) == "queued"


@on_the_engine
async def test_the_second_parent_sees_the_first_one_s_completion_although_it_began_before_it(engine: Engine) -> None:
    """Both have moved and neither has committed when the second one reaches the child."""
    parents = await engine.submit_many(2)
    child = await engine.submit(depends_on=parents)
    first, second = [await engine.start(parent) for parent in parents]
    await engine.be_connected(3)
    async with engine.holding("SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE", child):
        ends = [asyncio.create_task(engine.finish(attempt)) for attempt in (first, second)]
        await engine.until_waiting(2)
    assert await asyncio.gather(*ends) == ["completed", "completed"]
    assert await engine.status(child) == "queued"
    assert await engine.story(child) == ["submit", "unblock"]


@on_the_engine
async def test_parents_that_complete_in_one_call_unblock_their_child_once(engine: Engine) -> None:
    parents = await engine.submit_many(3)
    child = await engine.submit(depends_on=parents)
    attempts = [await engine.start(parent) for parent in parents]
    await tasks.end(engine.pool, [an_ending(attempt, "complete") for attempt in attempts], RULES)
    assert await engine.story(child) == ["submit", "unblock"]


@on_the_engine
async def test_a_submit_that_races_its_parent_s_completion_never_waits_for_ever(engine: Engine) -> None:
    seen = set()
    for round_ in range(2 * ROUNDS):
        attempt = await engine.running()

        async def submit_late(parent: UUID = attempt.task_id, turns: int = round_ % 4) -> UUID:
            for _ in range(turns):
                await asyncio.sleep(0)
            return await engine.submit(depends_on=[parent])

        child, ended = await asyncio.gather(submit_late(), engine.finish(attempt))
        assert ended == "completed"
        assert await engine.status(child) == "queued"
        seen.add(tuple(await engine.story(child)))
    assert seen <= {("submit",), ("submit", "unblock")}


@on_the_engine
async def test_a_submit_waits_for_its_parent_s_completion_that_is_just_being_written(engine: Engine) -> None:
    attempt = await engine.running()
    async with engine.holding(COMPLETE_IT, attempt.task_id):
        submitting = asyncio.create_task(engine.submit(depends_on=[attempt.task_id]))
        await engine.until_waiting(1)
    assert await engine.status(await submitting) == "queued"


def as_written(child: UUID, *parents: UUID) -> str:
    """A submission as the store sends it, for somebody who is not done with it yet."""
    submission = {
        "task_id": str(child), "actor": "probe", "provider": "probe", "priority": 2, "payload": {}, "max_retries": 3,
        "timeout_seconds": 1, "user_id": "ann", "depends_on": [str(parent) for parent in parents],
    }  # fmt: skip
    return json.dumps([submission])


@on_the_engine
async def test_a_completion_waits_for_a_child_that_is_just_being_submitted(engine: Engine) -> None:
    """Else the edge would be committed after the completion had looked for edges."""
    attempt = await engine.running()
    child = uuid4()
    async with engine.holding(
        f"SELECT * FROM {named('submit_tasks')}($1::text::jsonb)", as_written(child, attempt.task_id)
    ):
        ending = asyncio.create_task(engine.finish(attempt))
        await engine.until_waiting(1)
    assert await ending == "completed"
    assert await engine.status(child) == "queued"


@on_the_engine
async def test_who_submits_on_the_same_parents_need_not_wait_for_each_other(engine: Engine) -> None:
    """A parent with thousands of children must not make each new one wait for all the others."""
    parent = await engine.submit()
    sibling = await engine.submit(depends_on=[parent])
    async with engine.holding(
        f"SELECT * FROM {named('submit_tasks')}($1::text::jsonb)", as_written(uuid4(), parent, sibling)
    ):
        child = await asyncio.wait_for(engine.submit(depends_on=[parent, sibling]), 20)
    assert (await engine.row(child))["unmet"] == 2


@on_the_engine
async def test_submits_on_a_parent_and_its_child_at_the_same_moment_do_not_get_into_a_deadlock(engine: Engine) -> None:
    for _ in range(ROUNDS):
        parent = await engine.submit()
        child = await engine.submit(depends_on=[parent])
        await asyncio.gather(*(engine.submit(depends_on=[parent, child]) for _ in range(6)))


@on_the_engine
async def test_a_chain_is_worked_off_link_by_link(engine: Engine) -> None:
    chain = [await engine.submit()]
    for _ in range(4):
        chain.append(await engine.submit(depends_on=[chain[-1]]))
    for number in range(len(chain)):
        assert await engine.statuses(chain) == ["completed"] * number + ["queued"] + ["blocked"] * (4 - number)
        await complete(engine, chain[number])


@on_the_engine
async def test_a_diamond_s_last_task_starts_when_both_sides_have_completed(engine: Engine) -> None:
    top = await engine.submit()
    left, right = [await engine.submit(depends_on=[top]) for _ in range(2)]
    bottom = await engine.submit(depends_on=[left, right])
    await complete(engine, top)
    assert await engine.statuses([left, right, bottom]) == ["queued", "queued", "blocked"]
    await asyncio.gather(complete(engine, left), complete(engine, right))
    assert await engine.status(bottom) == "queued"
