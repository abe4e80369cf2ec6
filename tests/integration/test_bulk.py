"""Changes to many tasks: each task once, whoever runs the job and however often; canaries go first."""

import asyncio
from uuid import UUID, uuid4

import pytest

from tests.support.engine.store import Engine, a_submission, on_the_engine
from windlass.shared.filters import Filter
from windlass.shared.states import State
from windlass.shared.store import tasks
from windlass.shared.store.reading.by_queue import queues_of
from windlass.shared.store.rows import BulkJobRow
from windlass.shared.store.tasks import bulk


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk, "CHUNK", 3)


async def accepted(
    engine: Engine, action: str, wanted: Filter, *, owner: str | None = None, canary: int | None = None
) -> BulkJobRow:
    matched = await bulk.count(engine.pool, action, wanted, owner=owner)
    return await bulk.accept(
        engine.pool, uuid4(), action, wanted, matched=matched, user_id="ann", scope_user_id=owner, canary=canary
    )


async def run(engine: Engine, bulk_id: UUID) -> BulkJobRow:
    """As a runner does, until the job is done or waits."""
    while True:
        job = await bulk.get(engine.pool, bulk_id)
        assert job is not None
        if job["state"] != "running":
            return job
        await bulk.advance(engine.pool, job, await bulk.next_chunk(engine.pool, job))


def figures(job: BulkJobRow) -> tuple[str, int, int, int]:
    return job["state"], job["matched"], job["done"], job["changed"]


@on_the_engine
async def test_what_can_be_changed_is_changed_chunk_by_chunk(engine: Engine) -> None:
    dead = [await engine.dead() for _ in range(7)]
    cancelled = await engine.submit()
    await engine.cancel(cancelled)
    done, waiting = await engine.completed(), await engine.submit()
    job = await run(engine, (await accepted(engine, "retry", Filter()))["bulk_id"])
    assert figures(job) == ("finished", 8, 8, 8)
    assert await engine.statuses([*dead, cancelled, done, waiting]) == ["queued"] * 8 + ["completed", "queued"]

    running = await engine.start(waiting)
    job = await run(engine, (await accepted(engine, "cancel", Filter(user_id="ann")))["bulk_id"])
    assert figures(job) == ("finished", 9, 9, 9)
    assert await engine.statuses([*dead, cancelled, done]) == ["cancelled"] * 8 + ["completed"]
    assert (await engine.row(running.task_id))["cancel_requested"]
    assert await bulk.count(engine.pool, "cancel", Filter(), owner=None) == 0, "it has been asked already"


@on_the_engine
async def test_of_several_runners_one_does_each_chunk(engine: Engine) -> None:
    dead = [await engine.dead() for _ in range(12)]
    bulk_id = (await accepted(engine, "retry", Filter(status=[State.DEAD])))["bulk_id"]
    jobs = await asyncio.gather(*(run(engine, bulk_id) for _ in range(4)))
    assert {figures(job) for job in jobs} == {("finished", 12, 12, 12)}
    for task_id in dead:
        assert (await engine.story(task_id)).count("revive") == 1


@on_the_engine
async def test_a_runner_that_comes_too_late_changes_nothing(engine: Engine) -> None:
    dead = [await engine.dead() for _ in range(4)]
    job = await accepted(engine, "retry", Filter(status=[State.DEAD]))
    chunk = await bulk.next_chunk(engine.pool, job)
    assert chunk == dead[:3]
    assert await bulk.advance(engine.pool, job, chunk) is not None
    for task_id in dead[:3]:
        await engine.cancel(task_id)
    assert await bulk.advance(engine.pool, job, chunk) is None
    assert await engine.statuses(dead) == ["cancelled"] * 3 + ["dead"]
    assert figures(await run(engine, job["bulk_id"])) == ("finished", 4, 4, 4)


@on_the_engine
async def test_a_chunk_and_its_progress_are_one(engine: Engine) -> None:
    dead = [await engine.dead() for _ in range(3)]
    job = await accepted(engine, "retry", Filter(status=[State.DEAD]))
    await engine.sql("ALTER TABLE bulk_jobs ADD CONSTRAINT stuck CHECK (done = 0)")
    try:
        with pytest.raises(Exception, match="stuck"):
            await bulk.advance(engine.pool, job, dead)
    finally:
        await engine.sql("ALTER TABLE bulk_jobs DROP CONSTRAINT stuck")
    assert await engine.statuses(dead) == ["dead"] * 3
    assert await bulk.get(engine.pool, job["bulk_id"]) == job


@on_the_engine
async def test_what_came_or_ended_after_the_job_was_accepted_is_left_alone(engine: Engine) -> None:
    dead, running = await engine.dead(), await engine.running()
    revival = await accepted(engine, "retry", Filter(tag=None, user_id="ann"))
    await engine.finish(running, "bury")
    assert figures(await run(engine, revival["bulk_id"])) == ("finished", 1, 1, 1)
    assert await engine.statuses([dead, running.task_id]) == ["queued", "dead"]

    cancellation = await accepted(engine, "cancel", Filter(user_id="ann"))
    new = await engine.submit()
    assert figures(await run(engine, cancellation["bulk_id"])) == ("finished", 1, 1, 1)
    assert await engine.statuses([dead, new]) == ["cancelled", "queued"]


@on_the_engine
async def test_a_user_s_job_reaches_no_foreign_task(engine: Engine) -> None:
    own, foreign = await engine.submit(user_id="ann"), await engine.submit(user_id="bob")
    everything = await run(engine, (await accepted(engine, "cancel", Filter(), owner="ann"))["bulk_id"])
    assert figures(everything) == ("finished", 1, 1, 1)
    by_name = await run(engine, (await accepted(engine, "cancel", Filter(user_id="bob"), owner="ann"))["bulk_id"])
    assert figures(by_name) == ("finished", 0, 0, 0)
    assert await engine.statuses([own, foreign]) == ["cancelled", "queued"]


@on_the_engine
async def test_every_filter_survives_being_stored(engine: Engine) -> None:
    parent = uuid4()
    meant = await engine.dead(parent_task_id=parent, tags=["a", "b"], payload={"prompt": "a zeppelin"})
    await engine.dead(parent_task_id=parent, tags=["a"])
    row = await engine.row(meant)
    wanted = Filter(
        status=[State.DEAD], parent_task_id=parent, tag=["a", "b"],
        created_after=row["created_at"].replace(microsecond=0), q="zeppelin", fingerprint=row["error_fingerprint"],
    )  # fmt: skip
    job = await run(engine, (await accepted(engine, "retry", wanted))["bulk_id"])
    assert figures(job) == ("finished", 1, 1, 1)
    assert await engine.status(meant) == "queued"


@on_the_engine
async def test_the_rest_follows_when_all_canaries_have_completed(engine: Engine) -> None:
    dead = [await engine.dead() for _ in range(6)]
    job = await run(engine, (await accepted(engine, "retry", Filter(status=[State.DEAD]), canary=2))["bulk_id"])
    assert (job["state"], job["changed"], job["canary_ids"]) == ("waiting-for-canary", 2, dead[:2])
    assert await engine.statuses(dead) == ["queued"] * 2 + ["dead"] * 4

    await engine.finish(await engine.start(dead[0]))
    assert await bulk.judge_canaries(engine.pool, job["bulk_id"]) is None, "one is still under way"
    await engine.finish(await engine.start(dead[1]))
    judged = await bulk.judge_canaries(engine.pool, job["bulk_id"])
    assert judged is not None
    assert (judged["state"], judged["reason"]) == ("running", None)
    assert await bulk.judge_canaries(engine.pool, job["bulk_id"]) is None, "judged already"
    assert figures(await run(engine, job["bulk_id"])) == ("finished", 6, 6, 6)
    assert await engine.statuses(dead) == ["completed"] * 2 + ["queued"] * 4


@pytest.mark.parametrize("end", ["dead", "cancelled"])
@on_the_engine
async def test_one_canary_that_fails_stops_the_job(engine: Engine, end: str) -> None:
    dead = [await engine.dead() for _ in range(4)]
    job = await run(engine, (await accepted(engine, "retry", Filter(status=[State.DEAD]), canary=2))["bulk_id"])
    await engine.finish(await engine.start(dead[0]))
    if end == "dead":
        await engine.finish(await engine.start(dead[1]), "bury")
    else:
        await engine.cancel(dead[1])
    judged = await bulk.judge_canaries(engine.pool, job["bulk_id"])
    assert judged is not None
    assert judged["state"] == "stopped"
    assert judged["reason"].startswith(f"the canary {dead[1]} is {end}")
    assert await run(engine, job["bulk_id"]) == judged
    assert await engine.statuses(dead[2:]) == ["dead", "dead"]


@on_the_engine
async def test_canaries_that_cannot_be_revived_any_more_hold_nothing_up(engine: Engine) -> None:
    dead = [await engine.dead() for _ in range(2)]
    job = await accepted(engine, "retry", Filter(status=[State.DEAD]), canary=1)
    chunk = await bulk.next_chunk(engine.pool, job)
    await engine.revive(dead[0])
    waiting = await bulk.advance(engine.pool, job, chunk)
    assert waiting is not None
    assert (waiting["state"], waiting["canary_ids"]) == ("waiting-for-canary", [])
    await bulk.judge_canaries(engine.pool, job["bulk_id"])
    assert figures(await run(engine, job["bulk_id"])) == ("finished", 2, 2, 1)


@on_the_engine
async def test_children_come_back_with_their_parents(engine: Engine) -> None:
    parent = await engine.running()
    child = await engine.submit(depends_on=[parent.task_id])
    await engine.finish(parent, "bury")
    job = await run(engine, (await accepted(engine, "retry", Filter(status=[State.DEAD])))["bulk_id"])
    assert (job["state"], job["changed"]) == ("finished", 2)
    assert await engine.statuses([parent.task_id, child]) == ["queued", "blocked"]


@on_the_engine
async def test_of_those_with_one_key_one_is_revived_and_the_others_are_counted(engine: Engine) -> None:
    alike = []
    for _ in range(5):
        (row,) = await tasks.submit_keyed(engine.pool, [a_submission(dedupe_key="k")])
        alike.append(row["task_id"])
        await engine.cancel(row["task_id"])
    job = await run(engine, (await accepted(engine, "retry", Filter()))["bulk_id"])
    assert (*figures(job), job["duplicates"]) == ("finished", 5, 5, 1, 4)
    assert await engine.count("completed_at IS NULL") == 1
    (row,) = await tasks.submit_keyed(engine.pool, [a_submission(dedupe_key="k")])
    assert (row["deduplicated"], row["status"]) == (True, "queued")


@on_the_engine
async def test_what_waits_for_a_provider_is_found_by_its_queues(engine: Engine) -> None:
    """`tasks_due` goes by queue: without their names all that waits anywhere would be walked."""
    await engine.provide("both", limit=None, actors=("probe", "media"))
    await engine.submit_many(4, provider="both", actor="media")
    await engine.submit_many(2, provider="both")
    await engine.submit_many(3)
    wanted = Filter(provider="both")
    queues = await queues_of(engine.pool, wanted)
    assert queues is not None
    assert sorted(queues) == ["media.both", "probe.both"]
    chosen = bulk.changeable("cancel", wanted, queues=queues)
    assert any("queue = ANY" in branch for branch in chosen.branches())
    job = await run(engine, (await accepted(engine, "cancel", wanted))["bulk_id"])
    assert figures(job) == ("finished", 6, 6, 6)
