"""What a join still waits for is counted down by the ends of its parents, and counted anew when it may be nothing."""

from uuid import UUID

from tests.support.engine.graphs import bury, complete
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from windlass.shared.store import tasks
from windlass.shared.store.tasks import dependencies

PARENTS = 300
TOGETHER = 20
MOST_READS_EACH = 14
"""Of a task that ends with others: it is locked, looked at, written, and looked at for its dependents."""

ROWS_READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'tasks'"


async def unmet(engine: Engine, task_id: UUID) -> int:
    number: int = (await engine.row(task_id))["unmet"]
    return number


@on_the_engine
async def test_an_end_does_not_read_the_other_parents_of_a_join(engine: Engine) -> None:
    parents = await engine.submit_many(PARENTS)
    join = await engine.submit(depends_on=parents)
    attempts = [await engine.start(each) for each in parents[: 2 * TOGETHER]]
    endings = [an_ending(each, "complete") for each in attempts]
    async with engine.pool.acquire() as connection:
        await tasks.end(connection, endings[:TOGETHER], RULES)
        async with connection.transaction():
            before: int = await connection.fetchval(ROWS_READ)
            await tasks.end(connection, endings[TOGETHER:], RULES)
            after: int = await connection.fetchval(ROWS_READ)
    assert after - before <= TOGETHER * MOST_READS_EACH < PARENTS
    assert await unmet(engine, join) == PARENTS - 2 * TOGETHER
    assert await dependencies.recheck(engine.pool) == (None, 0), "as a count says"


@on_the_engine
async def test_the_last_of_many_unblocks_however_they_come_together(engine: Engine) -> None:
    parents = await engine.submit_many(7)
    join = await engine.submit(depends_on=parents)
    attempts = [await engine.start(each) for each in parents]
    for batch, left in ((attempts[:3], 4), (attempts[3:4], 3), (attempts[4:6], 1), (attempts[6:], 0)):
        await tasks.end(engine.pool, [an_ending(each, "complete") for each in batch], RULES)
        assert await unmet(engine, join) == left
        assert await dependencies.recheck(engine.pool) == (None, 0)
    assert await engine.status(join) == "queued"
    assert await engine.story(join) == ["submit", "unblock"]


@on_the_engine
async def test_a_parent_that_ends_twice_is_not_taken_for_two(engine: Engine) -> None:
    """Whoever waits for its end in any way had taken it off when it died; then it was revived."""
    parents = await engine.submit_many(3)
    join = await engine.submit(depends_on=parents, after_end=parents)
    again, second, third = parents
    await bury(engine, again)
    assert await unmet(engine, join) == 2
    await tasks.revive(engine.pool, again)
    await bury(engine, again)
    await complete(engine, second)
    assert (await engine.status(join), await unmet(engine, join)) == ("blocked", 1)
    await complete(engine, third)
    assert await engine.status(join) == "queued"


@on_the_engine
async def test_who_lives_again_is_waited_for(engine: Engine) -> None:
    parents = await engine.submit_many(3)
    join = await engine.submit(depends_on=parents, after_end=parents)
    again, second, third = parents
    await bury(engine, again)
    await tasks.revive(engine.pool, again)
    await complete(engine, second)
    await complete(engine, third)
    assert (await engine.status(join), await unmet(engine, join)) == ("blocked", 1)
    await complete(engine, again)
    assert await engine.status(join) == "queued"


@on_the_engine
async def test_a_failure_among_them_buries_at_once(engine: Engine) -> None:
    parents = await engine.submit_many(5)
    join = await engine.submit(depends_on=parents)
    good, bad = [await engine.start(each) for each in parents[:2]]
    await tasks.end(engine.pool, [an_ending(good, "complete"), an_ending(bad, "bury")], RULES)
    row = await engine.row(join)
    assert (row["status"], row["error"]["details"]) == ("dead", {"task_id": str(bad.task_id)})


@on_the_engine
async def test_who_is_to_be_asked_about_is_asked_when_the_last_has_ended(engine: Engine) -> None:
    parents = await engine.submit_many(3)
    join = await engine.submit(depends_on=parents, approval={"message": "go on?"})
    for parent, left in zip(parents, (3, 2, 1), strict=True):
        assert (await engine.row(join))["asked_at"] is None
        await complete(engine, parent)
        assert await unmet(engine, join) == left
    assert (await engine.row(join))["asked_at"] is not None


@on_the_engine
async def test_the_recheck_finds_nothing_where_a_parent_lives_again(engine: Engine) -> None:
    """What is believed is less than what is true then, and the ends to come set it right: nobody was forgotten."""
    parents = await engine.submit_many(3)
    join = await engine.submit(depends_on=parents, after_end=parents)
    await bury(engine, parents[0])
    await tasks.revive(engine.pool, parents[0])
    assert await unmet(engine, join) == 2
    assert await dependencies.recheck(engine.pool) == (None, 0)


@on_the_engine
async def test_the_recheck_leaves_alone_what_is_written_down_as_unsettled(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit(depends_on=[parent])
    await engine.sql("UPDATE tasks SET status = 'completed', completed_at = now() WHERE task_id = $1", parent)
    await engine.sql("INSERT INTO unsettled (parent_id, revived) VALUES ($1, false)", parent)
    assert await dependencies.recheck(engine.pool) == (None, 0)
    assert await engine.status(child) == "blocked"
    while await dependencies.settle_next(engine.pool):
        pass
    assert await engine.status(child) == "queued"
