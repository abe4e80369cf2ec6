"""Workflows: a status that follows from their tasks, whatever becomes of these."""

import asyncio
from uuid import UUID

import pytest

from tests.support.engine.dispatching import start_next
from tests.support.engine.pauses import paused
from tests.support.engine.store import RULES, Engine, an_ending, on_the_engine
from tests.support.engine.workflows import a_workflow, compared, in_a_workflow
from tests.support.servers.private_servers import Servers
from tests.unit.test_workflow_states import all_small_counts
from windlass.services.api.access.auth import Caller
from windlass.services.api.tasks.why import explanation_of
from windlass.shared.features.handling import handle_pending
from windlass.shared.features.workflows import operations, queries
from windlass.shared.features.workflows.operations import Resumption
from windlass.shared.features.workflows.subscriber import WORKFLOWS
from windlass.shared.filters import Filter
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Refused, WorkflowCancelled, bulk
from windlass.shared.workflow_states import status_of

DIAMOND = {"top": [], "left": ["top"], "right": ["top"], "bottom": ["left", "right"]}


@on_the_engine
async def test_a_diamond_runs_to_its_end(engine: Engine) -> None:
    async with compared(engine):
        flow = await a_workflow(engine, DIAMOND)
        assert await flow.statuses() == {"top": "queued", "left": "blocked", "right": "blocked", "bottom": "blocked"}
        for key in DIAMOND:
            assert await flow.status() == "running"
            await flow.finish(key)
        row = await flow.row()
        assert (row.status, row.total, row.live, row.completed) == ("completed", 4, 0, 4)
        assert row.completed_at is not None
        assert await flow.story() == ["submit", "complete"]
        assert await operations.count_drift(engine.pool) == []


@on_the_engine
async def test_what_does_not_depend_on_the_dead_goes_on_and_a_cascade_is_one_failure(engine: Engine) -> None:
    async with compared(engine):
        flow = await a_workflow(engine, {"a": [], "b": ["a"], "c": ["b"], "other": []})
        await flow.finish("a", "bury")
        assert await flow.statuses() == {"a": "dead", "b": "dead", "c": "dead", "other": "queued"}
        row = await flow.row()
        assert (row.status, row.failures, row.dead, row.live) == ("running", 1, 3, 1)
        await flow.finish("other")
        assert await flow.status() == "failed"


@on_the_engine
async def test_an_edge_on_any_end_is_met_by_a_failure(engine: Engine) -> None:
    async with compared(engine):
        flow = await a_workflow(engine, {"a": [], "clean": ["a"], "next": ["a"]}, after_end={"clean": ["a"]})
        await flow.finish("a", "bury")
        assert await flow.statuses() == {"a": "dead", "clean": "queued", "next": "dead"}
        await flow.finish("clean")
        assert await flow.status() == "failed"


@on_the_engine
async def test_an_escalation_holds_what_waits_and_lets_run_what_runs(engine: Engine) -> None:
    async with compared(engine):
        graph = {"bad": [], "runs": [], "retries": [], "waits": [], "behind": ["runs"]}
        flow = await a_workflow(engine, graph, failure_threshold=1)
        running, retrying = await flow.start("runs"), await flow.start("retries")
        await flow.finish("bad", "bury")
        assert await flow.status() == "escalated"
        assert await flow.held() == {"waits", "behind"}
        refused = await engine.claim(flow.ids["waits"])
        assert refused == Refused(flow.ids["waits"], Reason.WORKFLOW_ESCALATED)
        await engine.finish(running, result={"paid": True})
        assert (await engine.row(flow.ids["runs"])).result == {"paid": True}, "it is kept"
        assert (await flow.statuses())["behind"] == "queued", "its dependency is met"
        await engine.finish(retrying, "retry")
        assert await flow.held() == {"waits", "behind", "retries"}
        assert isinstance(await engine.claim(flow.ids["behind"]), Refused)
        assert (await engine.row(flow.ids["retries"])).retry_count == 1, "the attempt's own; standing still costs none"
        late = await tasks.submit(engine.pool, [in_a_workflow(flow.workflow_id)])
        assert late[0].task_id
        assert isinstance(await engine.claim(late[0].task_id), Refused), "from its submit on"
        assert await flow.status() == "escalated"
        assert (await engine.row(late[0].task_id)).held == ["workflow"]

        row = await operations.resume(engine.pool, flow.workflow_id, Resumption.FAILED)
        assert row is not None
        assert row.status == "running"
        assert (row.was, row.failures) == ("escalated", 0)
        await flow.janitor()
        assert await flow.held() == set()
        assert (await flow.statuses())["bad"] == "queued"
        await flow.finish("bad", "bury")
        assert ((await flow.row()).failures, await flow.status()) == (1, "escalated"), "since the last resume"
        assert await flow.story() == ["submit", "escalate", "resume", "escalate"]


@on_the_engine
async def test_the_very_last_task_may_escalate_and_none_turns_it_into_failed(engine: Engine) -> None:
    async with compared(engine):
        flow = await a_workflow(engine, {"only": []}, failure_threshold=1)
        await flow.finish("only", "bury")
        assert await flow.status() == "escalated"
        row = await operations.resume(engine.pool, flow.workflow_id, Resumption.NONE)
        assert row is not None
        assert row.status == "failed"
        again = await operations.resume(engine.pool, flow.workflow_id, Resumption.NONE)
        assert again is not None
        assert again.was == "failed", "it is not escalated any more"


@on_the_engine
async def test_resuming_revives_what_failed_and_never_what_completed(engine: Engine) -> None:
    graph = {"done": [], "bad": [], "buried": ["bad"], "dropped": ["bad"]}
    for mode, expected in (
        (Resumption.NONE, {"done": "completed", "bad": "dead", "buried": "dead", "dropped": "cancelled"}),
        (Resumption.FAILED, {"done": "completed", "bad": "queued", "buried": "blocked", "dropped": "cancelled"}),
        (
            Resumption.FAILED_AND_DOWNSTREAM,
            {"done": "completed", "bad": "queued", "buried": "blocked", "dropped": "blocked"},
        ),
    ):
        flow = await a_workflow(engine, graph, failure_threshold=1)
        await flow.finish("done")
        await engine.cancel(flow.ids["dropped"])
        await flow.finish("bad", "bury")
        assert await flow.status() == "escalated"
        await operations.resume(engine.pool, flow.workflow_id, mode)
        assert await flow.statuses() == expected
        assert await flow.status() == ("failed" if mode is Resumption.NONE else "running")
        assert await flow.held() == set()


@on_the_engine
async def test_cancelling_from_every_state(engine: Engine) -> None:
    async with compared(engine):
        flow = await a_workflow(engine, {"runs": [], "ready": [], "waits": [], "behind": ["runs"], "done": []})
        await flow.finish("done")
        attempt, ready = await flow.start("runs"), await flow.start("ready")
        row = await operations.cancel(engine.pool, flow.workflow_id)
        assert row is not None
        assert (row.status, row.cancel_requested) == ("running", True)
        assert await flow.statuses() == {
            "runs": "running", "ready": "running", "waits": "cancelled", "behind": "cancelled", "done": "completed"
        }  # fmt: skip
        assert await engine.finish(ready) == "completed", "it came before its worker heard of it"
        assert await flow.status() == "running"
        await engine.finish(attempt, "interrupt")
        assert await flow.status() == "cancelled"
        assert (await engine.revive(flow.ids["waits"])) == "cancelled", "nothing of it comes back"
        with pytest.raises(WorkflowCancelled):
            await tasks.submit(engine.pool, [in_a_workflow(flow.workflow_id)])
        assert (await flow.row()).total == 5
        assert (await flow.statuses())["ready"] == "completed"

        escalated = await a_workflow(engine, {"bad": [], "waits": []}, failure_threshold=1)
        await escalated.finish("bad", "bury")
        row = await operations.cancel(engine.pool, escalated.workflow_id)
        assert row is not None
        assert row.status == "cancelled"
        assert await escalated.statuses() == {"bad": "dead", "waits": "cancelled"}

        last = await a_workflow(engine, {"bad": []}, failure_threshold=1)
        await last.finish("bad", "bury")
        row = await operations.cancel(engine.pool, last.workflow_id)
        assert row is not None
        assert row.status == "cancelled"
        assert await last.story() == ["submit", "escalate", "cancel"]

        for end, status in (("complete", "completed"), ("bury", "failed")):
            over = await a_workflow(engine, {"only": []})
            await over.finish("only", end)
            row = await operations.cancel(engine.pool, over.workflow_id)
            assert row is not None
            assert (row.status, row.was, row.cancel_requested) == (status, status, False)


@on_the_engine
async def test_a_single_revival_in_every_state(engine: Engine) -> None:
    async with compared(engine):
        failed = await a_workflow(engine, {"bad": [], "behind": ["bad"]})
        await failed.finish("bad", "bury")
        assert await failed.status() == "failed"
        await engine.revive(failed.ids["bad"])
        assert await failed.status() == "running"
        assert await failed.statuses() == {"bad": "queued", "behind": "blocked"}
        assert (await failed.row()).completed_at is None
        assert await failed.story() == ["submit", "fail", "revive"]

        escalated = await a_workflow(engine, {"bad": [], "waits": []}, failure_threshold=1)
        await escalated.finish("bad", "bury")
        assert await engine.revive(escalated.ids["bad"]) == "queued"
        assert await escalated.status() == "escalated"
        assert await escalated.held() == {"bad", "waits"}


@on_the_engine
async def test_tasks_that_end_together_are_counted_by_one_turn(engine: Engine) -> None:
    flow = await a_workflow(engine, {f"task-{number}": [] for number in range(50)})
    last, *attempts = [await flow.start(key) for key in flow.ids]
    await tasks.end(engine.pool, [an_ending(each, "complete") for each in attempts], RULES)
    async with engine.pool.acquire() as connection, connection.transaction():
        before = await connection.fetchval(WRITES)
        await operations.settle(connection, flow.workflow_id, reports=[])
        assert await connection.fetchval(WRITES) == before + 1
    await engine.finish(last)
    row = await flow.row()
    assert (row.status, row.completed) == ("completed", 50)


WRITES = "SELECT n_tup_upd FROM pg_stat_xact_user_tables WHERE relname = 'workflows'"


@on_the_engine
async def test_who_waits_for_a_paid_job_goes_on_though_its_workflow_stands(engine: Engine) -> None:
    """It keeps a slot, and would keep it from everybody."""
    flow = await a_workflow(engine, {"bad": [], "ordered": []}, failure_threshold=1)
    ordered = await flow.start("ordered")
    await engine.sql("UPDATE tasks SET job_open = true, provider_job_id = 'j' WHERE task_id = $1", ordered.task_id)
    await flow.finish("bad", "bury")
    await engine.finish(ordered, "retry", delay_seconds=0)
    await flow.janitor()
    assert (await flow.status(), await flow.held()) == ("escalated", set())
    again = await flow.start("ordered")
    await engine.finish(again)
    assert (await flow.statuses())["ordered"] == "completed"


@on_the_engine
async def test_bulk_passes_over_what_was_given_up_and_counts_it(engine: Engine) -> None:
    flow = await a_workflow(engine, {"bad": [], "waits": []})
    await flow.finish("bad", "bury")
    await operations.cancel(engine.pool, flow.workflow_id)
    other = await engine.dead()
    wanted = Filter()
    found = await bulk.count(engine.pool, "retry", wanted, owner=None)
    job = await bulk.accept(engine.pool, other, "retry", wanted, matched=found, user_id="ann", scope_user_id=None)
    over = await bulk.advance(engine.pool, job, await bulk.next_chunk(engine.pool, job))
    assert over is not None
    assert (over.matched, over.done, over.changed) == (3, 3, 1)
    assert await engine.status(other) == "queued"
    assert (await flow.statuses(), await flow.status()) == ({"bad": "dead", "waits": "cancelled"}, "cancelled")


@on_the_engine
async def test_a_dependency_across_workflows_buries_there_too(engine: Engine) -> None:
    async with compared(engine):
        first = await a_workflow(engine, {"a": []})
        second = await a_workflow(engine, {"b": []}, fields={"b": {"depends_on": [first.ids["a"]]}})
        attempt = await first.start("a")
        async with engine.holding(
            "SELECT 1 FROM workflows WHERE workflow_id = $1 FOR NO KEY UPDATE", second.workflow_id
        ):
            await engine.finish(attempt, "bury")
            assert await first.status() == "failed"
            assert await engine.status(second.ids["b"]) == "dead", "an end waits for no workflow"
        assert (await second.statuses(), await second.status()) == ({"b": "dead"}, "failed")


@on_the_engine
async def test_what_somebody_had_locked_at_the_escalation_is_not_claimed_and_held_a_little_later(
    engine: Engine,
) -> None:
    flow = await a_workflow(engine, {"bad": [], "locked": []}, failure_threshold=1)
    attempt = await flow.start("bad")
    async with engine.holding("SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE", flow.ids["locked"]):
        await engine.finish(attempt, "bury")
    assert (await engine.row(flow.ids["locked"])).held == []
    await is_halted(engine, flow.ids["locked"], Reason.WORKFLOW_ESCALATED)
    assert await flow.held() == {"locked"}
    await is_halted(engine, flow.ids["locked"], Reason.WORKFLOW_ESCALATED)


async def is_halted(engine: Engine, task_id: UUID, reason: Reason) -> None:
    """Nobody may claim it, and whoever asks is told the same as who tries."""
    assert await engine.claim(task_id) == Refused(task_id, reason)
    told = await explanation_of(engine.pool, await engine.row(task_id), Caller("key", "user", "ann"), Settings())
    assert told["reason"] == reason


@on_the_engine
async def test_what_a_cancel_has_not_come_to_yet_is_not_claimed_and_says_that_it_is_over(engine: Engine) -> None:
    flow = await a_workflow(engine, {"first": [], "second": []})
    await engine.sql("UPDATE workflows SET cancel_requested = true")
    await engine.sql("UPDATE task_groups SET is_closed = true")
    for task_id in flow.ids.values():
        await is_halted(engine, task_id, Reason.FINISHED)
    await operations.settle(engine.pool, flow.workflow_id)
    assert (await flow.statuses(), await flow.status()) == ({"first": "cancelled", "second": "cancelled"}, "cancelled")


@on_the_engine
async def test_who_comes_back_to_wait_while_it_escalates_is_held_whoever_is_first(engine: Engine) -> None:
    for _ in range(10):
        flow = await a_workflow(engine, {"bad": [], "retries": []}, failure_threshold=1)
        bad, retries = await flow.start("bad"), await flow.start("retries")
        await asyncio.gather(engine.finish(bad, "bury"), engine.finish(retries, "retry"))
        await flow.janitor()
        assert (await flow.status(), await flow.held()) == ("escalated", {"retries"})


@on_the_engine
async def test_a_fault_in_a_workflow_changes_no_end_and_is_tried_again(engine: Engine) -> None:
    flow = await a_workflow(engine, {"a": [], "b": ["a"]})
    attempt = await flow.start("a")
    await engine.sql("ALTER TABLE workflows ADD CONSTRAINT a_fault CHECK (completed = 0)")
    assert await engine.finish(attempt, result={"paid": True}) == "completed"
    assert (await flow.row()).completed == 0, "it is returned as it was"
    assert (await handle_pending(engine.pool, WORKFLOWS, [flow.workflow_id])).failed
    assert await engine.status(flow.ids["b"]) == "queued", "dependencies are the engine's own"
    await engine.sql("ALTER TABLE workflows DROP CONSTRAINT a_fault")
    row = await flow.row()
    assert (row.live, row.completed) == (1, 1)


@on_the_engine
async def test_a_drift_is_found_and_counted_again(engine: Engine) -> None:
    flow = await a_workflow(engine, {"a": [], "b": ["a"]})
    await engine.sql("UPDATE workflows SET live = 1, completed = 1")
    assert await operations.count_drift(engine.pool) == [flow.workflow_id]
    assert (await flow.row()).live == 2
    assert await operations.count_drift(engine.pool) == []


@on_the_engine
async def test_a_resume_forgives_only_failures_that_it_has_seen(engine: Engine) -> None:
    flow = await a_workflow(engine, {"bad": [], "worse": []}, failure_threshold=1)
    worse = await flow.start("worse")
    await flow.finish("bad", "bury")
    assert await flow.status() == "escalated"
    async with engine.holding("SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE", flow.ids["bad"]):
        resuming = asyncio.create_task(operations.resume(engine.pool, flow.workflow_id, Resumption.FAILED))
        await engine.until_waiting(1)
        await engine.finish(worse, "bury")
    row = await resuming
    assert row is not None
    assert (row.status, row.failures, (await flow.statuses())["worse"]) == ("escalated", 1, "dead")


@on_the_engine
async def test_pages_continue_until_all_is_held_released_and_cancelled(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "TASKS_AT_ONCE", 2)
    flow = await a_workflow(engine, {"bad": [], **{f"task-{number}": [] for number in range(7)}}, failure_threshold=1)
    await flow.finish("bad", "bury")
    await flow.janitor()
    assert len(await flow.held()) == 7
    await operations.resume(engine.pool, flow.workflow_id, Resumption.NONE)
    await flow.janitor()
    assert await flow.held() == set()
    row = await operations.cancel(engine.pool, flow.workflow_id)
    assert row is not None
    assert row.status == "running", "a page of it is cancelled"
    await flow.janitor()
    assert (await flow.status(), (await flow.row()).cancelled) == ("cancelled", 7)


@on_the_engine
async def test_stalls_and_expiries_are_counted(engine: Engine) -> None:
    async with compared(engine):
        flow = await a_workflow(engine, {"lost": [], "old": [], "behind": ["old"]}, fields={"lost": {"max_retries": 0}})
        attempt = await flow.start("lost")
        await engine.lapse(attempt.task_id)
        await tasks.stall(engine.pool)
        await engine.outlive(flow.ids["old"])
        await tasks.expire(engine.pool)
        row = await flow.row()
        assert (row.status, row.dead, row.failures) == ("failed", 3, 2)


@on_the_engine
async def test_postgres_says_the_same_as_python_of_all_small_counts(engine: Engine) -> None:
    for counts in all_small_counts():
        said = await engine.pool.fetchval(
            """
            INSERT INTO workflows (workflow_id, user_id, name, live, dead, cancelled, total, failures,
                                   failure_threshold, cancel_requested)
            VALUES (gen_random_uuid(), 'ann', 'small', $1, $2, $3, $1::int + $2::int + $3::int, $4, $5, $6)
            RETURNING status
            """,
            counts.live, counts.dead, counts.cancelled, counts.failures, counts.failure_threshold,
            counts.cancel_requested,
        )  # fmt: skip
        assert said == status_of(counts), counts


AFTER_THE_LOCK = "BEFORE UPDATE OF lane_credit ON providers FOR EACH ROW"
"""A claim writes it between locking its tasks and moving them, where both lanes have something due."""


@pytest.mark.parametrize("limit", [None, 5])
def test_who_asks_for_what_is_next_passes_over_what_is_halted(
    servers: Servers, migrated_template: str, limit: int | None
) -> None:
    pass_over(servers=servers, migrated_template=migrated_template, limit=limit)


@on_the_engine
async def pass_over(engine: Engine, limit: int | None) -> None:
    await engine.provide("probe", limit=limit)
    flow = await a_workflow(engine, {"bad": [], "locked": []}, failure_threshold=1)
    behind = await engine.submit()
    attempt = await flow.start("bad")
    async with engine.holding("SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE", flow.ids["locked"]):
        await engine.finish(attempt, "bury")
    assert [each.task_id for each in await start_next(engine, 1)] == [behind], "nobody waits behind it"
    assert await start_next(engine, 1) == []
    await operations.resume(engine.pool, flow.workflow_id, Resumption.NONE)
    assert [each.task_id for each in await start_next(engine, 1)] == [flow.ids["locked"]]


@on_the_engine
async def test_an_escalation_between_the_lock_and_the_claim_is_seen(engine: Engine) -> None:
    await engine.provide("probe", limit=5)
    flow = await a_workflow(engine, {"bad": [], "next": []}, failure_threshold=1)
    bad = await flow.start("bad")
    retried = await engine.running()
    await engine.finish(retried, "retry", delay_seconds=0)
    await engine.sql("UPDATE providers SET retry_share = 50")
    async with paused(engine, AFTER_THE_LOCK):
        asking = asyncio.create_task(start_next(engine, 2))
        await engine.until_waiting(1)
        await engine.finish(bad, "bury")
        assert (await engine.row(flow.ids["next"])).held == [], "it is not held yet"
    assert [each.task_id for each in await asking] == [retried.task_id]
    assert (await flow.statuses())["next"] == "queued"
