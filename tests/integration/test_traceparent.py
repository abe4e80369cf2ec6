"""The trace that a task was submitted in: kept with its row, and read again by whoever goes on with it."""

import asyncio
from uuid import uuid4

from tests.support.engine.store import Engine, a_submission, on_the_engine
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Ask, Claim, Claimed, Refused

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@on_the_engine
async def test_every_way_to_submit_keeps_it_and_a_repeat_does_not_change_it(engine: Engine) -> None:
    alone, batched, silent = (
        a_submission(traceparent=TRACEPARENT),
        a_submission(traceparent=TRACEPARENT),
        a_submission(),
    )
    keyed = a_submission(dedupe_key="k", traceparent=TRACEPARENT)
    repeated = a_submission(dedupe_key="k", traceparent=TRACEPARENT[:-1] + "0")
    await tasks.submit(engine.pool, [alone, silent])
    await tasks.submit_keyed(engine.pool, [keyed])
    await tasks.submit_keyed(engine.pool, [repeated])
    await tasks.submit_batch(engine.pool, [batched])
    for each in (alone, keyed, batched):
        assert (await engine.row(each.task_id))["traceparent"] == TRACEPARENT
    assert (await engine.row(silent.task_id))["traceparent"] is None


@on_the_engine
async def test_it_is_read_by_who_asks_and_never_by_others(engine: Engine) -> None:
    task_id = await engine.submit(traceparent=TRACEPARENT)
    for traced, expected in ((False, None), (True, TRACEPARENT)):
        ask = Ask({"probe.probe": 1}, [uuid4()])
        (given,) = (await tasks.claim_next(engine.pool, "worker-1", ask, 30, traced=traced)).claimed
        assert (given.task_id, given.traceparent) == (task_id, expected)
        await engine.finish(given, "interrupt")

    claims = [Claim(task_id, uuid4()), Claim(uuid4(), uuid4())]
    claimed, unknown = await tasks.claim(engine.pool, "worker-1", claims, 30, traced=True)
    assert isinstance(claimed, Claimed)
    assert claimed.traceparent == TRACEPARENT
    assert isinstance(unknown, Refused)
    (again,) = await tasks.claim(engine.pool, "worker-1", claims[:1], 30)
    assert isinstance(again, Claimed)
    assert again.traceparent is None

    (stalled,) = await tasks.stall(engine.pool, expired_for_seconds=None, dead_workers=["worker-1"])
    assert (stalled["task_id"], stalled["worker_id"]) == (task_id, "worker-1")
    assert (stalled["attempt"], stalled["traceparent"]) == (3, TRACEPARENT)


@on_the_engine
async def test_it_is_read_of_a_task_that_came_while_its_claim_waited(engine: Engine) -> None:
    """The statement's snapshot is older than the task."""
    async with engine.pool.acquire() as in_the_way, in_the_way.transaction():
        await in_the_way.execute("SELECT pg_advisory_xact_lock(hashtext('windlass turns'), hashtext('worker-1'))")
        ask = Ask({"probe.probe": 1}, [uuid4()])
        claiming = asyncio.create_task(tasks.claim_next(engine.pool, "worker-1", ask, 30, traced=True))
        await engine.until_waiting(1)
        assert not claiming.done()
        task_id = await engine.submit(traceparent=TRACEPARENT)
    (given,) = (await claiming).claimed
    assert (given.task_id, given.traceparent) == (task_id, TRACEPARENT)
