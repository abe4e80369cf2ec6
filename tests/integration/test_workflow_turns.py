"""Turns of workflows: what holds before a turn, what a turn does, and what it leaves to the next one."""

from tests.support.engine.dispatching import start_next
from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.workflows import a_workflow, relay_all, tidy_up
from windlass.shared.features.workflows import queries
from windlass.shared.features.workflows.queries import TASKS_AT_ONCE
from windlass.shared.reasons import Reason
from windlass.shared.store.tasks import Refused
from windlass.shared.store.workflows import reading

ROWS_READ = "SELECT seq_tup_read + idx_tup_fetch FROM pg_stat_xact_user_tables WHERE relname = 'tasks'"
END_THEM = """
    UPDATE tasks SET status = 'completed', attempt = 1, claim_token = gen_random_uuid(), worker_id = 'another',
        started_at = clock_timestamp(), completed_at = clock_timestamp(), result = '{}'
    WHERE status = 'queued' AND workflow_id IS NULL
"""
OTHERS = 1500


@on_the_engine
async def test_nothing_starts_after_an_escalation_that_was_not_handled_yet(engine: Engine) -> None:
    flow = await a_workflow(engine, {"bad": [], "other": []}, failure_threshold=1)
    await flow.finish("bad", "bury")
    row = await reading.get(engine.pool, flow.workflow_id)
    assert row is not None
    assert (row.status, row.is_behind) == ("running", True), "no orchestrator has counted it"
    assert await start_next(engine) == []
    refused = await engine.claim(flow.ids["other"])
    assert refused == Refused(flow.ids["other"], Reason.WORKFLOW_ESCALATED)


@on_the_engine
async def test_each_life_that_failed_is_one_failure(engine: Engine) -> None:
    flow = await a_workflow(engine, {"bad": [], "buried": ["bad"], "fine": []})
    await flow.finish("fine")
    for failures in (1, 2):
        await flow.finish("bad", "bury")
        assert await flow.statuses() == {"bad": "dead", "buried": "dead", "fine": "completed"}
        assert (await flow.row()).failures == failures, "a buried task has not failed"
        await engine.revive(flow.ids["bad"])
        await tidy_up(engine)
    assert (await flow.row()).failures == 2, "a revival forgives none"


@on_the_engine
async def test_a_read_counts_what_has_ended_until_then(engine: Engine) -> None:
    flow = await a_workflow(engine, {"first": [], "second": ["first"]})
    await flow.finish("first")
    row = await flow.row()
    assert (row.status, row.live, row.completed) == ("running", 1, 1)
    await flow.finish("second")
    row = await flow.row()
    assert (row.status, row.live, row.completed) == ("completed", 0, 2)
    assert not await relay_all(engine), "nothing is left to the orchestrator"


@on_the_engine
async def test_the_orchestrator_counts_what_has_ended(engine: Engine) -> None:
    flow = await a_workflow(engine, {"only": []})
    await flow.finish("only")
    assert await relay_all(engine)
    assert not await relay_all(engine)
    row = await reading.get(engine.pool, flow.workflow_id)
    assert row is not None
    assert (row.status, row.completed) == ("completed", 1)


@on_the_engine
async def test_an_escalation_holds_more_tasks_than_a_page_has(engine: Engine) -> None:
    waiting: dict[str, list[str]] = {f"task-{number}": [] for number in range(TASKS_AT_ONCE + 1)}
    flow = await a_workflow(engine, {"bad": [], **waiting}, failure_threshold=1)
    await flow.finish("bad", "bury")
    await tidy_up(engine)
    assert await flow.held() == set(waiting)


@on_the_engine
async def test_a_turn_reads_no_tasks_of_others(engine: Engine) -> None:
    flow = await a_workflow(engine, {"done": [], "waits": []})
    await flow.finish("done")
    async with engine.pool.acquire() as connection:
        for ends in (False, True):
            await engine.submit_many(OTHERS)
            if ends:
                await engine.sql(END_THEM)
            await engine.sql("ANALYZE tasks")
            async with connection.transaction():
                before = await connection.fetchval(ROWS_READ)
                await queries.lock(connection, flow.workflow_id)
                assert await connection.fetchval(ROWS_READ) - before < OTHERS / 10
