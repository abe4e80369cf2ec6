"""A dependency that dies, is cancelled, or is revived: what becomes of those that wait for it."""

import asyncio
from uuid import UUID, uuid4

import pytest

from tests.support.engine.graphs import ROUNDS, bury, complete
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from windlass.shared.store import tasks
from windlass.shared.store.tasks import UnknownDependency, dependencies


async def diamond(engine: Engine) -> list[UUID]:
    top = await engine.submit()
    left, right = [await engine.submit(depends_on=[top]) for _ in range(2)]
    return [top, left, right, await engine.submit(depends_on=[left, right])]


@pytest.mark.parametrize("failure", ["dead", "cancelled"])
@on_the_engine
async def test_death_and_cancel_go_down_the_whole_graph_once(engine: Engine, failure: str) -> None:
    top, *below = await diamond(engine)
    bystander = await engine.submit(depends_on=[await engine.submit()])
    if failure == "dead":
        await bury(engine, top)
    else:
        await engine.cancel(top)
    assert await engine.statuses([top, *below]) == [failure, "dead", "dead", "dead"]
    for task_id in below:
        row = await engine.row(task_id)
        assert (row["error"]["type"], row["error"]["kind"]) == ("DependencyFailed", "permanent")
        assert await engine.story(task_id) == ["submit", "bury"]
    assert (await engine.row(below[0]))["error"]["details"] == {"task_id": str(top)}
    assert await engine.status(bystander) == "blocked"


@on_the_engine
async def test_a_buried_dependent_s_event_tells_the_same_error_as_its_row(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent])
    await bury(engine, parent)
    (_, event) = await engine.history(child)
    assert event["data"]["error"] == (await engine.row(child))["error"]
    assert set(event["data"]["error"]) == {"type", "kind", "message", "details", "stack_trace", "attempt"}


@on_the_engine
async def test_a_child_of_two_dies_with_the_first_that_fails_and_stays_dead(engine: Engine) -> None:
    good, bad = await engine.submit_many(2)
    child = await engine.submit(depends_on=[good, bad])
    await bury(engine, bad)
    assert await engine.status(child) == "dead"
    await complete(engine, good)
    assert await engine.story(child) == ["submit", "bury"]


@on_the_engine
async def test_a_parent_that_dies_while_the_other_completes_buries_the_child(engine: Engine) -> None:
    for _ in range(ROUNDS):
        parents = await engine.submit_many(2)
        child = await engine.submit(depends_on=parents)
        good, bad = [await engine.start(parent) for parent in parents]
        await asyncio.gather(engine.finish(good), engine.finish(bad, "bury"))
        assert await engine.story(child) == ["submit", "bury"]


@pytest.mark.parametrize("failure", ["dead", "cancelled"])
@on_the_engine
async def test_a_child_submitted_on_a_failed_parent_is_accepted_and_buried_with_its_reason(
    engine: Engine, failure: str
) -> None:
    parent = await engine.submit()
    if failure == "dead":
        await bury(engine, parent)
    else:
        await engine.cancel(parent)
    child = await engine.submit(depends_on=[parent])
    row = await engine.row(child)
    assert (row["status"], row["error"]["type"]) == ("dead", "DependencyFailed")
    assert str(parent) in row["error"]["message"]
    assert await engine.story(child) == ["submit", "bury"]


@on_the_engine
async def test_an_unknown_parent_is_named_and_nothing_is_stored(engine: Engine) -> None:
    known, unknown = await engine.submit(), uuid4()
    with pytest.raises(UnknownDependency) as refused:
        await engine.submit(depends_on=[known, unknown])
    assert refused.value.missing == [str(unknown)]
    assert await engine.count("true") == 1


@pytest.mark.parametrize("failure", ["dead", "cancelled"])
@on_the_engine
async def test_a_revived_task_brings_back_what_it_had_buried(engine: Engine, failure: str) -> None:
    top, left, right, bottom = await diamond(engine)
    if failure == "dead":
        await bury(engine, top)
    else:
        await engine.cancel(top)
    assert await engine.revive(top) == "queued"
    assert await engine.statuses([top, left, right, bottom]) == ["queued", "blocked", "blocked", "blocked"]
    rows = [await engine.row(task_id) for task_id in (left, right, bottom)]
    assert [(row["unmet"], row["error"], row["completed_at"]) for row in rows] == [
        (1, None, None), (1, None, None), (2, None, None),
    ]  # fmt: skip
    for task_id in (top, left, right, bottom):
        await complete(engine, task_id)


@on_the_engine
async def test_a_revived_task_does_not_bring_back_what_was_cancelled_or_died_by_itself(engine: Engine) -> None:
    parent = await engine.submit()
    cancelled = await engine.submit(depends_on=[parent])
    expired = await engine.submit(depends_on=[parent], max_age_seconds=60)
    await engine.cancel(cancelled)
    await engine.outlive(expired)
    await tasks.expire(engine.pool)
    await bury(engine, parent)
    await engine.revive(parent)
    assert await engine.statuses([cancelled, expired]) == ["cancelled", "dead"]


@on_the_engine
async def test_what_has_another_parent_that_is_still_dead_is_buried_again_with_that_one_named(engine: Engine) -> None:
    revived, still_dead = await engine.submit_many(2)
    child = await engine.submit(depends_on=[revived, still_dead])
    grandchild = await engine.submit(depends_on=[child])
    await bury(engine, revived)
    await bury(engine, still_dead)
    await engine.revive(revived)
    row = await engine.row(child)
    assert (row["status"], row["error"] and row["error"]["details"]) == ("dead", {"task_id": str(still_dead)})
    assert await engine.status(grandchild) == "dead"
    await engine.revive(still_dead)
    assert await engine.statuses([child, grandchild]) == ["blocked", "blocked"]


@on_the_engine
async def test_a_child_revived_by_hand_below_a_dead_parent_stays_dead_and_says_why(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent])
    await bury(engine, parent)
    assert await engine.revive(child) == "dead"
    assert (await engine.row(child))["error"]["details"] == {"task_id": str(parent)}


@on_the_engine
async def test_a_child_revived_after_its_parents_have_completed_waits_for_nobody(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent])
    await engine.cancel(child)
    await complete(engine, parent)
    assert await engine.revive(child) == "queued"
    assert (await engine.row(child))["unmet"] == 0


@on_the_engine
async def test_a_child_revived_while_its_last_parent_s_completion_is_being_written_waits_for_it(engine: Engine) -> None:
    """That completion has already looked for children to unblock, and found this one cancelled. It keeps it locked."""
    attempt = await engine.running()
    child = await engine.submit(depends_on=[attempt.task_id])
    await engine.cancel(child)
    async with engine.holding("SELECT 1") as connection:
        await tasks.end(connection, [an_ending(attempt, "complete")], RULES)
        reviving = asyncio.create_task(engine.revive(child))
        await engine.until_waiting(1)
    assert await reviving == "queued"


@on_the_engine
async def test_a_revive_that_races_the_other_parent_s_completion_never_waits_for_ever(engine: Engine) -> None:
    for _ in range(ROUNDS):
        bad, good = await engine.submit_many(2)
        child = await engine.submit(depends_on=[bad, good])
        await bury(engine, bad)
        attempt = await engine.start(good)
        await asyncio.gather(engine.finish(attempt), engine.revive(bad))
        assert [(await engine.row(child))[field] for field in ("status", "unmet")] == ["blocked", 1]
        await complete(engine, bad)
        assert await engine.status(child) == "queued"


@on_the_engine
async def test_the_recheck_mends_a_count_that_is_wrong(engine: Engine) -> None:
    done, open_ = await engine.submit_many(2)
    ready = await engine.submit(depends_on=[done])
    waiting = await engine.submit(depends_on=[open_])
    await engine.sql("UPDATE tasks SET unmet = 5 WHERE status = 'blocked'")
    await engine.sql("UPDATE tasks SET status = 'completed', completed_at = now() WHERE task_id = $1", done)
    await dependencies.recheck(engine.pool)
    assert await engine.statuses([ready, waiting]) == ["queued", "blocked"]
    assert (await engine.row(waiting))["unmet"] == 1
    assert await engine.story(waiting) == ["submit"]


@on_the_engine
async def test_the_recheck_buries_what_waits_for_a_parent_that_failed_unnoticed(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent])
    await engine.sql("UPDATE tasks SET status = 'cancelled', completed_at = now() WHERE task_id = $1", parent)
    await dependencies.recheck(engine.pool)
    assert await engine.status(child) == "dead"


@on_the_engine
async def test_the_recheck_changes_nothing_where_all_is_well(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent])
    before = await engine.row(child)
    await dependencies.recheck(engine.pool)
    assert await engine.row(child) == before
