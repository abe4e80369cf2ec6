"""A project's queue: what it does in each case, on a real database."""

import asyncio
from uuid import UUID

import asyncpg
import pytest
from uuid_utils.compat import uuid7

from tests.support.engine.projects import Project
from tests.support.engine.store import A_FAILURE, Engine, on_the_engine
from windlass.shared.features.projects import bulk as bulk_of_projects
from windlass.shared.features.projects import operations
from windlass.shared.features.projects.subscriber import PROJECTS
from windlass.shared.filters import Filter
from windlass.shared.store import outbox, tasks
from windlass.shared.store.projects import looking_after
from windlass.shared.store.tasks import bulk


@on_the_engine
async def test_a_single_run_is_one_task_and_the_project_is_idle_after_it(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    assert await project.state() == ("idle", None)
    assert await project.start() is None
    status = await project.status()
    assert (status.state, status.mode, status.stop_reason) == ("running", "single", None)
    assert status.counts == {"waiting": 2}, "bound, and not claimed"
    attempt = await project.claimed()
    assert await project.items() == {"one": "running", "two": "waiting"}
    assert (await project.status()).counts == {"running": 1, "waiting": 1}
    await engine.finish(attempt)
    assert await project.state() == ("idle", "finished")
    assert await project.items() == {"one": "done", "two": "waiting"}
    assert await project.ends() == ["completed"]
    assert await project.story() == ["add", "add", "start", "open", "complete", "fulfil", "finish"]
    row = await engine.row(attempt.task_id)
    assert (row.project_id, row.user_id) == (str(project.project_id), "ann")


@on_the_engine
async def test_a_loop_goes_on_until_the_backlog_is_empty(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two", "three")
    await project.start("loop")
    for title in ("one", "two", "three"):
        assert await project.running() == title
        await project.finish()
    assert await project.state() == ("idle", "finished")
    assert await project.ends() == ["completed"] * 3
    assert set((await project.items()).values()) == {"done"}


@on_the_engine
async def test_an_advance_takes_two_statements_and_writes_the_projects_row_once(engine: Engine) -> None:
    """They lie between two runs, with those that find, lock and delete the outbox rows."""
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    await project.status()
    await engine.finish(await project.claimed())
    async with engine.pool.acquire() as connection, connection.transaction():
        written = "SELECT n_tup_upd::int FROM pg_stat_xact_user_tables WHERE relname = 'projects'"
        before = await connection.fetchval(written)
        moves = await outbox.rows(connection, PROJECTS.name, [project.project_id], at_most=10)
        statements: list[str] = []
        with connection.query_logger(lambda record: statements.append(record.query)):
            await PROJECTS.handle(connection, moves)
        assert (await connection.fetchval(written) - before, len(statements)) == (1, 2)
    history = [(event.seq, event.type) for event in (await project.history())[-4:]]
    assert history == [(5, "complete"), (6, "fulfil"), (7, "advance"), (8, "open")]


@on_the_engine
async def test_retries_are_the_same_run(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    await project.start("loop")
    task_id = await project.finish("retry", delay_seconds=0)
    assert await project.state() == ("running", None)
    assert await project.task() == task_id
    assert await project.items() == {"one": "running"}
    await engine.become_due(task_id)
    await project.finish()
    assert await project.ends() == ["completed"]


@on_the_engine
async def test_a_dead_run_ends_the_loop_with_its_error(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    await project.finish("bury")
    status = await project.status()
    assert (status.state, status.stop_reason, status.last_error) == ("idle", "failed", A_FAILURE)
    assert await project.items() == {"one": "failed", "two": "waiting"}
    (run,) = await project.runs()
    assert run.error == A_FAILURE


@on_the_engine
async def test_on_failure_continue_goes_on_to_the_next(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two", on_failure="continue")
    await project.start("loop")
    await project.finish("bury")
    assert await project.running() == "two"
    await project.finish()
    status = await project.status()
    assert (status.state, status.stop_reason, status.last_error) == ("idle", "finished", A_FAILURE)
    assert await project.ends() == ["dead", "completed"]


@on_the_engine
async def test_a_task_cancelled_by_hand_stops_the_loop(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two", on_failure="continue")
    await project.start("loop")
    attempt = await project.claimed()
    await engine.cancel(attempt.task_id)
    assert await project.state() == ("running", None)
    await engine.finish(attempt, "interrupt")
    assert await project.state() == ("idle", "stopped")
    assert await project.items() == {"one": "failed", "two": "waiting"}
    assert await project.ends() == ["cancelled"]


@on_the_engine
async def test_a_bulk_cancel_stops_it_as_well(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    job = await bulk.accept(engine.pool, uuid7(), "cancel", Filter(), matched=1, user_id="ann", scope_user_id=None)
    await bulk.advance(engine.pool, job, [await project.task()])
    assert await project.state() == ("idle", "stopped")


@on_the_engine
async def test_a_run_that_nobody_has_taken_is_withdrawn_at_once_and_its_item_is_first_again(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop", "two")
    task_id = await project.task()
    await project.stop()
    assert await project.state() == ("idle", "stopped")
    assert await project.items() == {"two": "waiting", "one": "waiting"}
    assert await project.ends() == ["withdrawn"]
    assert await engine.status(task_id) == "cancelled"
    assert (await engine.history(task_id))[-1].data == {"status": "cancelled", "reason": "withdrawn"}


@on_the_engine
async def test_a_run_that_works_or_waits_for_its_retry_ends_and_no_next_one_starts(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    task_id = await project.finish("retry", delay_seconds=0)
    await project.stop()
    status = await project.status()
    assert (status.state, status.current_task_id) == ("stopping", task_id)
    await project.stop()
    assert await project.state() == ("stopping", None)
    assert await project.start() == "queue-already-running"
    await engine.become_due(task_id)
    await project.finish()
    assert await project.state() == ("idle", "stopped")
    assert await project.items() == {"one": "done", "two": "waiting"}


@on_the_engine
async def test_stopping_what_is_idle_changes_nothing(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    before = (await project.status()).last_seq
    await project.stop()
    assert await project.force_stop()
    assert (await project.status()).last_seq == before


@on_the_engine
async def test_what_cannot_start_says_why(engine: Engine) -> None:
    project = await Project.made(engine)
    assert await project.start() == "backlog-empty"
    await project.add("one", "two")
    await project.skip("one")
    assert await project.start(item="one") == "item-not-waiting"
    project.ids["gone"] = uuid7()
    assert await project.start(item="gone") == "item-not-found"
    assert await operations.archive(engine.pool, project.project_id) is None
    assert await operations.archive(engine.pool, project.project_id) is None
    assert await project.start() == "project-archived"
    assert await project.skip("two") == "project-archived"


@on_the_engine
async def test_what_runs_is_not_archived(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    await project.start()
    assert await operations.archive(engine.pool, project.project_id) == "project-running"


@on_the_engine
async def test_of_many_starts_at_once_one_starts(engine: Engine) -> None:
    project = await Project.made(engine, *(f"item {number}" for number in range(60)))
    refusals = await asyncio.gather(*(project.start("loop") for _ in range(50)))
    assert sorted(refusals, key=str) == [None, *["queue-already-running"] * 49]
    assert len(await project.runs()) == 1
    assert await engine.count("true") == 1


@on_the_engine
async def test_whoever_comes_while_another_starts_it_is_told_so(engine: Engine) -> None:
    """They wait for the one who was first, and then see what it did: no index has to refuse them."""
    project = await Project.made(engine, "one", "two")
    await engine.be_connected(4)
    async with engine.holding("LOCK TABLE project_runs IN EXCLUSIVE MODE"):
        starts = [asyncio.create_task(project.start("loop")) for _ in range(3)]
        await engine.until_waiting(3)
    assert sorted(await asyncio.gather(*starts), key=str) == [None, *["queue-already-running"] * 2]
    assert len(await project.runs()) == 1


@on_the_engine
async def test_two_open_runs_of_one_project_cannot_be_written(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    another = """
        INSERT INTO project_runs (run_id, project_id, item_id, task_id, life, mode)
        SELECT gen_random_uuid(), project_id, item_id, task_id, life + $1, mode FROM project_runs
    """
    with pytest.raises(asyncpg.UniqueViolationError, match="project_runs_open"):
        await engine.sql(another, 1)
    await project.stop()
    with pytest.raises(asyncpg.UniqueViolationError, match="task_id_life"):
        await engine.sql(
            another.replace("life, mode)", "life, mode, state, ended_at)").replace(
                "mode FROM", "mode, state, ended_at FROM"
            ),
            0,
        )


@on_the_engine
async def test_a_late_row_about_an_earlier_life_closes_nothing(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    task_id = await project.finish("bury")
    await engine.revive(task_id)
    await write_row(engine, project, task_id, life=1, status="dead", move="bury")
    assert await project.state() == ("running", None)
    assert await project.ends() == ["dead", "running"]


@on_the_engine
async def test_rows_in_any_order_and_more_than_once_change_nothing(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two", on_failure="continue")
    await project.start("loop")
    task_id = await project.finish("bury")
    for _ in range(2):
        await write_row(engine, project, task_id, life=1, status="dead", move="bury")
        await write_row(engine, project, task_id, life=1, status="retrying", move="retry")
    assert await project.running() == "two"
    assert await project.ends() == ["dead", "running"]


@on_the_engine
async def test_a_life_that_an_older_build_began_without_a_run_gets_one(engine: Engine) -> None:
    """If the project is idle and that life has not ended since."""
    project = await Project.made(engine, "one")
    await project.start()
    task_id = await project.finish("bury")
    assert await project.state() == ("idle", "failed")
    await engine.sql("UPDATE tasks SET concerns = 0")  # its moves write no rows
    await engine.revive(task_id)
    await engine.sql("UPDATE tasks SET concerns = 1")
    await write_row(engine, project, task_id, life=2, status="queued", move="revive")
    assert await project.state() == ("running", None)
    assert await project.task() == task_id
    await project.finish("bury")
    assert await project.ends() == ["dead", "dead"]
    await write_row(engine, project, task_id, life=2, status="queued", move="revive")
    assert await project.state() == ("idle", "failed")
    assert await project.ends() == ["dead", "dead"]


async def write_row(engine: Engine, project: Project, task_id: UUID, *, life: int, status: str, move: str) -> None:
    await engine.sql(
        """
        INSERT INTO outbox (feature, subject, task_id, life, seq, move, status) VALUES ('run', $1, $2, $3, 1, $4, $5)
        """,
        project.project_id,
        task_id,
        life,
        move,
        status,
    )


@on_the_engine
async def test_a_lost_worker_is_the_same_run(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    attempt = await project.claimed()
    await engine.lapse(attempt.task_id)
    await tasks.stall(engine.pool, expired_for_seconds=0)
    assert await project.running() == "one"
    await engine.become_due(attempt.task_id)
    await project.finish()
    assert await project.running() == "two"


@on_the_engine
async def test_a_run_that_is_too_old_to_start_has_failed(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    await project.start()
    await engine.outlive(await project.task())
    await tasks.expire(engine.pool)
    assert await project.state() == ("idle", "failed")


@on_the_engine
async def test_no_end_and_no_sweep_waits_for_a_project_that_another_process_has_locked(engine: Engine) -> None:
    projects_of_one = [await Project.made(engine, "one") for _ in range(3)]
    for project in projects_of_one:
        await project.start()
    aged, ended, cancelled = projects_of_one
    await engine.outlive(await aged.task())
    attempt = await ended.claimed()
    task_id = await cancelled.task()
    async with engine.holding("SELECT 1 FROM projects FOR NO KEY UPDATE"):
        await tasks.expire(engine.pool)
        await engine.finish(attempt)
        await engine.cancel(task_id)
    assert [await project.state() for project in projects_of_one] == [
        ("idle", "failed"), ("idle", "finished"), ("idle", "stopped"),
    ]  # fmt: skip


# Revivals


@on_the_engine
async def test_revived_by_hand_while_idle_it_is_a_new_single_run(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    task_id = await project.finish("bury")
    assert await engine.revive(task_id) == "queued"
    first, second = await project.runs()
    assert (second.task_id, second.life, second.mode, second.revived_from) == (task_id, 2, "single", first.run_id)
    assert await project.state() == ("running", None)
    await project.finish()
    assert await project.state() == ("idle", "finished")
    assert await project.items() == {"one": "done", "two": "waiting"}


@on_the_engine
async def test_revived_by_hand_while_it_runs_is_refused(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two", on_failure="continue")
    await project.start("loop")
    task_id = await project.finish("bury")
    refused = await operations.revive(engine.pool, project.project_id, task_id)
    assert refused is not None
    assert (refused.reason, refused.open_run_id) == (
        "queue-already-running", (await project.status()).current_run_id
    )  # fmt: skip
    assert await engine.status(task_id) == "dead"


@on_the_engine
async def test_the_engine_returns_the_task_of_a_run_to_its_owner(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    await project.start()
    task_id = await project.finish("bury")
    row = await tasks.revive(engine.pool, task_id)
    assert row is not None
    assert (row.status, row.is_owned, row.revived) == ("dead", True, [])
    job = await bulk.accept(engine.pool, uuid7(), "retry", Filter(), matched=1, user_id="ann", scope_user_id=None)
    after = await bulk.advance(engine.pool, job, [task_id])
    assert after is not None
    assert (after.changed, await engine.status(task_id)) == (0, "dead")


@on_the_engine
async def test_a_revival_and_a_start_at_once_are_one_or_the_other(engine: Engine) -> None:
    for _ in range(5):
        project = await Project.made(engine, "one", "two")
        await project.start()
        task_id = await project.finish("bury")
        await asyncio.gather(
            operations.revive(engine.pool, project.project_id, task_id), project.start(item="two")
        )  # fmt: skip
        assert len([run for run in await project.runs() if run.ended_at is None]) == 1
        live = "project_id = $1::text AND completed_at IS NULL"
        assert await engine.pool.fetchval(f"SELECT count(*) FROM tasks WHERE {live}", str(project.project_id)) == 1


@on_the_engine
async def test_revived_in_bulk_the_item_goes_to_the_head(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two", "three")
    await project.start("loop", "two")
    dead = await project.finish("bury")
    plain = await engine.dead()
    job = await bulk.accept(engine.pool, uuid7(), "retry", Filter(), matched=2, user_id="ann", scope_user_id=None)
    after = await bulk_of_projects.advance(engine.pool, job, sorted([dead, plain]))
    assert after is not None
    assert (after.changed, after.requeued) == (1, 1)
    assert await engine.statuses([dead, plain]) == ["dead", "queued"]
    assert await project.items() == {"two": "waiting", "one": "waiting", "three": "waiting"}
    assert await project.state() == ("idle", "failed")


@on_the_engine
async def test_after_a_bulk_requeue_the_item_at_the_head_is_what_runs(engine: Engine) -> None:
    """The bulk job leaves the choice to whoever handles the project's rows; what a worker has by then runs on."""
    project = await Project.made(engine, "one", "two", "three", on_failure="continue")
    await project.start("loop")
    dead = await project.finish("bury")
    assert await project.running() == "two"
    former = await project.task()
    job = await bulk.accept(engine.pool, uuid7(), "retry", Filter(), matched=1, user_id="ann", scope_user_id=None)
    after = await bulk_of_projects.advance(engine.pool, job, [dead])
    assert after is not None
    assert (after.changed, after.requeued) == (0, 1)
    assert await project.running() == "one"
    assert await engine.status(former) == "cancelled"
    assert (await project.items())["two"] == "waiting"
    assert await engine.count("true") == 3, "one task for each choice"
    await project.finish()
    assert await project.running() == "two"
    await project.claimed()
    assert await project.running() == "two"


@on_the_engine
async def test_what_was_changed_since_keeps_its_state_when_the_revived_task_completes(engine: Engine) -> None:
    for change in ("skip", "edit"):
        project = await Project.made(engine, "one")
        await project.start()
        task_id = await project.finish("bury")
        await (project.skip("one") if change == "skip" else project.edit("one", priority=1))
        await engine.revive(task_id)
        await project.finish()
        assert await project.state() == ("idle", "finished")
        assert await project.items() == {"one": "skipped" if change == "skip" else "failed"}


@on_the_engine
async def test_a_revived_run_that_nobody_has_taken_is_withdrawn(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    await project.start()
    task_id = await project.finish("bury")
    await engine.revive(task_id)
    await project.stop()
    assert await project.state() == ("idle", "stopped")
    assert await project.ends() == ["dead", "withdrawn"]
    assert await project.items() == {"one": "waiting"}


# What must never be needed


@on_the_engine
async def test_an_end_without_a_row_is_an_orphan_until_the_project_is_looked_at(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    attempt = await project.claimed()
    assert await looking_after.count_orphans(engine.pool) == 0
    await engine.sql("UPDATE tasks SET concerns = 0 WHERE task_id = $1", attempt.task_id)
    await engine.finish(attempt)
    assert await looking_after.count_orphans(engine.pool) == 1
    await operations.settle(engine.pool, project.project_id)
    assert await project.running() == "two"
    await engine.finish(await project.claimed())
    assert await looking_after.count_orphans(engine.pool) == 0, "its row is pending"


@on_the_engine
async def test_after_a_restore_a_run_without_its_task_is_lost(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    await project.start("loop")
    await engine.sql("DELETE FROM tasks")
    seen = (await project.status()).last_seq
    assert await operations.restore(engine.pool, step=1000) == 1
    status = await project.status()
    assert (status.state, status.stop_reason) == ("idle", "failed")
    assert status.last_error is not None
    assert status.last_error["type"] == "Lost"
    assert await project.ends() == ["lost"]
    assert status.last_seq > seen + 1000


@on_the_engine
async def test_each_event_is_logged_once_by_the_process_that_commits_it(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level("INFO", logger="projects"):
        project = await Project.made(engine, "one")
        await project.start()
        await engine.finish(await project.claimed())
        await asyncio.gather(*(project.status() for _ in range(3)))
    names = {"add": "item", "start": "", "open": "run", "complete": "run", "fulfil": "item", "finish": ""}
    logged = [record.getMessage().split()[0] for record in caplog.records]
    expected = [f"project_{names[event]}_{event}".replace("__", "_") for event in await project.story()]
    assert logged == expected


@on_the_engine
async def test_a_superseded_task_is_a_plain_one_to_whoever_revives_it(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start()
    former = await project.task()
    await project.move("two", before="one")
    assert await engine.revive(former) == "queued"
    assert await project.running() == "two"
