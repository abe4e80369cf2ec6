"""The backlog of a project: its order, and the late choice of what runs."""

import asyncio

import pytest
from uuid_utils.compat import uuid7

from tests.support.engine.projects import Project, an_item
from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.features.projects import backlog, queries
from windlass.shared.store.tasks import Claimed


@on_the_engine
async def test_an_edit_of_the_backlog_changes_what_runs_as_long_as_nobody_has_claimed_it(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two", "three")
    await project.start("loop")
    former, (run,) = await project.task(), await project.runs()
    assert await project.move("three", before="one") is None
    assert await project.running() == "three"
    (after,) = await project.runs()
    assert (after.run_id, after.state) == (run.run_id, "running")
    assert (await engine.history(former))[-1].data == {"status": "cancelled", "reason": "superseded"}
    assert await project.state() == ("running", None), "nobody was told of the superseded one's end"
    assert await project.items() == {"three": "waiting", "one": "waiting", "two": "waiting"}
    await project.claimed()
    assert await project.move("two", before="three") is None
    assert await project.running() == "three", "claimed: no more"


@pytest.mark.parametrize("way", ["skip", "delete"])
def test_what_is_taken_out_is_exchanged_for_the_next(way: str, servers: object, migrated_template: str) -> None:
    @on_the_engine
    async def test(engine: Engine) -> None:
        project = await Project.made(engine, "one", "two")
        await project.start()
        assert await (project.skip("one") if way == "skip" else project.delete("one")) is None
        assert await project.running() == "two"
        assert await (project.skip("two") if way == "skip" else project.delete("two")) is None
        assert await project.running() is None
        assert await project.state() == ("idle", "finished")
        assert await project.ends() == ["withdrawn"]

    test(servers=servers, migrated_template=migrated_template)


@on_the_engine
async def test_a_new_text_of_the_bound_item_is_what_runs(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start(item="one")
    assert await project.edit("one", payload={"seconds": 7}) is None
    assert (await engine.row(await project.task())).payload == {"seconds": 7}
    assert await project.move("two", before="one") is None
    assert await project.running() == "one", "an item that was named is not exchanged"


@on_the_engine
async def test_what_a_worker_has_claimed_is_left_alone(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start()
    await project.claimed()
    for refusal in (
        await project.edit("one", priority=0),
        await project.move("one", before="two"),
        await project.skip("one"),
        await project.requeue("one"),
        await project.delete("one"),
    ):
        assert refusal == "item-running"
    assert await project.delete("two") is None


@on_the_engine
async def test_an_edit_and_a_claim_at_once_are_one_or_the_other(engine: Engine) -> None:
    for _ in range(10):
        project = await Project.made(engine, "one", "two")
        await project.start()
        claim, refusal = await asyncio.gather(engine.claim(await project.task()), project.move("two", before="one"))
        assert refusal is None
        assert await project.running() == ("one" if isinstance(claim, Claimed) else "two")


@on_the_engine
async def test_an_edit_waits_for_the_claim_that_is_under_way(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start()
    async with engine.holding("SELECT 1 FROM tasks FOR NO KEY UPDATE"):
        editing = asyncio.create_task(project.skip("one"))
        await engine.until_waiting(1)
        assert not editing.done()
    assert await editing is None


@on_the_engine
async def test_a_stopping_queue_is_not_rebound(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    task_id = await project.finish("retry", delay_seconds=0)
    await project.stop()
    await project.move("two", before="one")
    assert await project.task() == task_id


@on_the_engine
async def test_done_and_skipped_items_can_be_requeued_where_they_stand(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start()
    await project.finish()
    assert await project.skip("one") == "item-done"
    assert await project.requeue("one") is None
    assert await project.requeue("one") is None
    assert await project.items() == {"one": "waiting", "two": "waiting"}
    assert await project.skip("two") is None
    assert await project.skip("two") is None
    assert await project.requeue("two") is None
    assert await project.items() == {"one": "waiting", "two": "waiting"}


@on_the_engine
async def test_a_move_writes_one_row(engine: Engine) -> None:
    project = await Project.made(engine)
    await backlog.add(engine.pool, project.project_id, [an_item(f"{number}") for number in range(1000)])
    rows = await project.rows()
    written = "SELECT sum(n_tup_upd) FROM pg_stat_xact_user_tables WHERE relname = 'project_items'"
    async with engine.pool.acquire() as connection, connection.transaction():
        for number in (10, 990, 500):
            moved, neighbour = rows[number].item_id, rows[1000 - number - 1].item_id
            before = await connection.fetchval(written)
            await backlog.change(connection, project.project_id, moved, {}, after=neighbour)
            assert await connection.fetchval(written) - before == 1


@on_the_engine
async def test_a_look_at_a_project_reads_few_of_its_items(engine: Engine) -> None:
    read = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'project_items'"
    project = await Project.made(engine, *(str(number) for number in range(500)))
    for starts in (False, True):
        if starts:
            await project.start("loop")
        await engine.sql("ANALYZE project_items")  # a plan that was made for an empty table reads all of it
        async with engine.pool.acquire() as connection, connection.transaction():
            before = await connection.fetchval(read)
            assert await queries.lock(connection, project.project_id) is not None
            assert await connection.fetchval(read) - before < 20


@on_the_engine
async def test_there_is_always_a_place_between(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two", "three")
    for _ in range(400):
        await project.move("three", before="two")
        await project.move("two", before="three")
    assert list(await project.items()) == ["one", "two", "three"]
    assert len(max((row.position for row in await project.rows()), key=len)) < 300


@on_the_engine
async def test_beside_itself_or_nobody_there_is_no_place(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    assert await project.move("one", before="one") == "neighbour-not-found"
    project.ids["gone"] = uuid7()
    assert await project.move("one", before="gone") == "neighbour-not-found"
    assert await project.move("gone", before="one") == "item-not-found"


@on_the_engine
async def test_more_items_keep_the_first_one_first(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    await project.start("loop")
    task_id = await project.task()
    await project.add("two")
    assert await project.task() == task_id
    await project.finish()
    assert await project.running() == "two"
