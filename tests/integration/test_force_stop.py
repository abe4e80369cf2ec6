"""Force-stop: everything of the run is asked to stop, and the project is idle only with proof."""

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.support.engine.projects import Project
from tests.support.engine.store import Engine, a_submission, on_the_engine
from windlass.shared.features.projects import operations
from windlass.shared.store import tasks
from windlass.shared.store.projects import RunRead
from windlass.shared.store.tasks import ParentCancelled, children


async def receipt_of(project: Project) -> dict[str, Any]:
    run: RunRead = (await project.runs())[-1]
    assert run.receipt is not None
    return run.receipt


def proofs(receipt: dict[str, Any]) -> dict[UUID, str | None]:
    return {UUID(each["task_id"]): each["proof"] for each in receipt["tasks"]}


@on_the_engine
async def test_what_nobody_has_taken_is_cancelled_at_once(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    task_id = await project.task()
    assert await project.force_stop()
    assert await project.state() == ("idle", "forced")
    assert await project.ends() == ["cancelled"]
    assert await project.items() == {"one": "failed", "two": "waiting"}
    assert proofs(await receipt_of(project)) == {task_id: None}


@on_the_engine
async def test_until_the_work_has_stopped_it_is_stopping_and_says_what_still_runs(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    attempt = await project.claimed()
    assert not await project.force_stop()
    status = await project.status()
    assert status.state == "stopping"
    assert status.remains is not None
    (left,) = status.remains["still_running"]
    assert (left["task_id"], left["worker_id"]) == (str(attempt.task_id), "worker-1")
    assert not await project.force_stop(), "again is allowed, and changes nothing"
    assert await project.story() == ["add", "add", "start", "open", "force"]
    await engine.finish(attempt, "interrupt")
    assert await project.state() == ("idle", "forced"), "proven in the transaction that ended it"
    assert proofs(await receipt_of(project)) == {attempt.task_id: "returned"}


@pytest.mark.parametrize(
    ("proof", "kind"),
    [({"keeper": 7, "agent": 8, "signals": []}, "keeper"), (None, "returned")],
)
def test_the_receipt_names_its_proof(
    proof: dict[str, Any] | None, kind: str, servers: object, migrated_template: str
) -> None:
    @on_the_engine
    async def test(engine: Engine) -> None:
        project = await Project.made(engine, "one")
        await project.start()
        attempt = await project.claimed()
        await project.force_stop()
        await engine.finish(attempt, "interrupt", proof=proof)
        receipt = await receipt_of(project)
        assert proofs(receipt) == {attempt.task_id: kind}
        assert receipt["tasks"][0]["processes"] == proof
        kept = await engine.pool.fetchrow("SELECT * FROM audit_log WHERE action = 'project.force-stopped'")
        assert kept is not None
        assert (kept["target"], kept["details"]["tasks"]) == (str(project.project_id), receipt["tasks"])

    test(servers=servers, migrated_template=migrated_template)


@pytest.mark.parametrize("kind", ["guardian", "successor", "lease"])
def test_a_worker_that_died_is_proven_by_its_guardian_or_successor_or_by_time(
    kind: str, servers: object, migrated_template: str
) -> None:
    @on_the_engine
    async def test(engine: Engine) -> None:
        project = await Project.made(engine, "one")
        await project.start()
        attempt = await project.claimed()
        await project.force_stop()
        await engine.lapse(attempt.task_id)
        seen = {"worker-1": {"by": kind, "signals": []}} if kind != "lease" else {}
        await tasks.stall(engine.pool, expired_for_seconds=0, proofs=seen)
        assert await project.state() == ("idle", "forced")
        assert proofs(await receipt_of(project)) == {attempt.task_id: kind}

    test(servers=servers, migrated_template=migrated_template)


@on_the_engine
async def test_everything_that_came_of_the_run_is_stopped_level_by_level(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    attempt = await project.claimed()
    child = await engine.completed(parent_task_id=attempt.task_id)
    grandchild = await engine.running(parent_task_id=child)
    waiting = await engine.submit(parent_task_id=grandchild.task_id)
    stranger = await engine.submit()
    assert not await project.force_stop()
    await engine.finish(attempt, "interrupt")
    assert await project.state() == ("stopping", None), "the run has ended; what came of it has not"
    assert not await operations.prove_stopped(engine.pool, project.project_id)
    status = await project.status()
    assert status.remains is not None
    assert [each["task_id"] for each in status.remains["still_running"]] == [str(grandchild.task_id)]
    assert await project.start() == "queue-already-running"
    await engine.finish(grandchild, "interrupt")
    assert await operations.prove_stopped(engine.pool, project.project_id)
    assert await project.state() == ("idle", "forced")
    assert proofs(await receipt_of(project)) == {
        attempt.task_id: "returned",
        grandchild.task_id: "returned",
        waiting: None,
    }
    assert await engine.statuses([child, stranger]) == ["completed", "queued"]


@on_the_engine
async def test_what_is_asked_to_stop_gets_no_more_children(engine: Engine) -> None:
    parent = await engine.running()
    await engine.cancel(parent.task_id)
    with pytest.raises(ParentCancelled):
        await engine.submit(parent_task_id=parent.task_id)
    with pytest.raises(ParentCancelled):
        await tasks.submit_keyed(engine.pool, [a_submission(parent_task_id=parent.task_id, dedupe_key="k")])
    with pytest.raises(ParentCancelled):
        await tasks.submit_batch(engine.pool, [a_submission(), a_submission(parent_task_id=parent.task_id)])
    assert (await children.submit_child(engine.pool, parent, "0", a_submission())).refusal == "cancelled"
    assert await engine.count("true") == 1


@on_the_engine
async def test_a_child_that_is_just_being_made_does_not_slip_in(engine: Engine) -> None:
    """It is there before the cancel, which finds it; or it is refused."""
    for _ in range(10):
        project = await Project.made(engine, "one")
        await project.start()
        attempt = await project.claimed()

        async def bear(parent: UUID = attempt.task_id) -> None:
            try:
                while True:
                    await engine.submit(parent_task_id=parent)
            except ParentCancelled:
                return

        bearing = [asyncio.create_task(bear()) for _ in range(3)]
        await project.force_stop()
        await asyncio.gather(*bearing)
        left = await engine.count(f"parent_task_id = '{attempt.task_id}' AND status <> 'cancelled'")
        assert left == 0


@on_the_engine
async def test_an_open_job_is_listed_apart(engine: Engine) -> None:
    project = await Project.made(engine, "one")
    await project.start()
    attempt = await project.claimed()
    await engine.sql("UPDATE tasks SET job_open = true, provider_job_id = 'job-1'")
    await project.force_stop()
    await engine.finish(attempt, "interrupt")
    assert await project.state() == ("idle", "forced")
    (job,) = (await receipt_of(project))["open_jobs"]
    assert (job["task_id"], job["provider_job_id"]) == (str(attempt.task_id), "job-1")


@on_the_engine
async def test_a_run_that_completes_after_all_is_forced_as_well(engine: Engine) -> None:
    project = await Project.made(engine, "one", "two")
    await project.start("loop")
    attempt = await project.claimed()
    await project.force_stop()
    assert await engine.finish(attempt) == "completed"
    assert await project.state() == ("idle", "forced")
    assert await project.items() == {"one": "done", "two": "waiting"}
