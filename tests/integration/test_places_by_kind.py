"""A worker's places on threads and those on its loop: each is counted for the queues that it serves."""

from uuid import UUID

from uuid_utils.compat import uuid4

from tests.support.engine.flow import look
from tests.support.engine.store import Engine, on_the_engine
from windlass.shared.admission import ProviderView
from windlass.shared.store import tasks
from windlass.shared.store.operating import queues, reconciliation, workers
from windlass.shared.store.tasks import Ask

ON_THREADS, ON_THE_LOOP = "probe.probe", "summarize.probe"


async def serve_both(engine: Engine, *, threads: int, loop: int, worker: str = "worker-1") -> None:
    """One worker, for whom the summaries are on its loop."""
    await workers.register(
        engine.pool,
        worker,
        hostname="h",
        pid=1,
        queues=[ON_THREADS, ON_THE_LOOP],
        capacity=threads + loop,
        async_queues=[ON_THE_LOOP],
        async_capacity=loop,
    )


async def due_in_both(engine: Engine) -> tuple[UUID, UUID]:
    return await engine.submit(), await engine.submit(actor="summarize")


def idle(view: ProviderView) -> dict[str, int]:
    return dict(zip(view.queues, view.idle_workers, strict=True))


@on_the_engine
async def test_a_look_finds_a_place_of_the_kind_that_a_queue_needs(engine: Engine) -> None:
    await engine.provide("probe", limit=None, actors=("probe", "summarize"))
    await serve_both(engine, threads=1, loop=3)
    await due_in_both(engine)
    before = await look(engine)
    assert (before.capacity, before.idle_places, idle(before)) == (4, 4, {ON_THREADS: 1, ON_THE_LOOP: 1})

    await engine.running()
    busy = await look(engine)
    assert (busy.idle_places, idle(busy)) == (3, {ON_THREADS: 0, ON_THE_LOOP: 1}), "its only thread is taken"

    for _ in range(3):
        await engine.running(actor="summarize")
    full = await look(engine)
    assert (full.idle_places, idle(full)) == (0, {ON_THREADS: 0, ON_THE_LOOP: 0})


@on_the_engine
async def test_a_slot_is_left_to_another_queue_only_while_that_has_a_place(engine: Engine) -> None:
    """The one that is next is the other queue's, whose kind of place is taken: then nobody waits for it."""
    await engine.provide("probe", limit=2, actors=("probe", "summarize"))
    await serve_both(engine, threads=1, loop=1)
    await engine.running(actor="summarize")
    first = await engine.submit(actor="summarize", priority=0)
    second = await engine.submit(priority=9)
    granted = await tasks.claim_next(engine.pool, "worker-1", Ask({ON_THREADS: 1}, [uuid4()]), 30)
    assert [each.task_id for each in granted.claimed] == [second]
    assert await engine.status(first) == "queued"


@on_the_engine
async def test_a_slot_is_left_to_another_queue_that_has_a_place_on_the_loop(engine: Engine) -> None:
    await engine.provide("probe", limit=1, actors=("probe", "summarize"))
    await serve_both(engine, threads=1, loop=1)
    await engine.submit(actor="summarize", priority=0)
    await engine.submit(priority=9)
    assert (await tasks.claim_next(engine.pool, "worker-1", Ask({ON_THREADS: 1}, [uuid4()]), 30)).claimed == []


@on_the_engine
async def test_a_queue_has_the_capacity_of_its_kind(engine: Engine) -> None:
    await engine.provide("probe", limit=None, actors=("probe", "summarize"))
    await serve_both(engine, threads=2, loop=50)
    await workers.register(engine.pool, "of-before", hostname="h", pid=1, queues=[ON_THREADS, ON_THE_LOOP], capacity=8)
    await due_in_both(engine)
    rows, _ = await queues.status(engine.pool, user_id=None, heard_within_seconds=60)
    assert {row.queue: row.capacity for row in rows if row.provider == "probe"} == {ON_THREADS: 10, ON_THE_LOOP: 58}


@on_the_engine
async def test_who_waits_for_a_place_of_its_kind_is_nobody_s_fault(engine: Engine) -> None:
    await engine.provide("probe", limit=None, actors=("probe", "summarize"))
    await serve_both(engine, threads=1, loop=1)
    await engine.sql("UPDATE workers SET started_at = now() - interval '1 h'")
    await engine.running()
    await due_in_both(engine)
    await engine.sql(
        "UPDATE tasks SET available_at = now() - interval '10 min', created_at = now() - interval '10 min'"
    )
    await engine.sql("UPDATE tasks SET started_at = now() - interval '10 min' WHERE status = 'running'")
    found = await reconciliation.count_unaccounted(engine.pool, after_seconds=120, heard_within_seconds=60)
    assert found["dispatcher"] == 1, "the one for the loop could have started"


@on_the_engine
async def test_the_user_comes_with_the_claim(engine: Engine) -> None:
    await engine.submit(user_id="ann")
    (attempt,) = (await tasks.claim_next(engine.pool, "worker-1", Ask({ON_THREADS: 1}, [uuid4()]), 30)).claimed
    assert attempt.user_id == "ann"
    recalled = await tasks.recall(engine.pool, "worker-1", [attempt.claim_token], 30, epoch=1)
    assert [each.user_id for each in recalled.claimed] == ["ann"]
