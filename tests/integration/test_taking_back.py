"""What a worker with very many tasks leaves behind is taken back whole, not as much as one call takes."""

from uuid import UUID, uuid4

from tests.support.engine.store import Engine, on_the_engine
from windlass.services.actors.worker.leases.take_back import take_back
from windlass.services.janitor.duties.stale import recover_stale
from windlass.shared.store import tasks
from windlass.shared.store.operating import workers
from windlass.shared.store.tasks import Claim

MORE_THAN_TWO_CALLS_TAKE = 1001


async def run_very_many(engine: Engine) -> list[UUID]:
    await workers.register(engine.pool, "worker-1", hostname="h", pid=1, queues=["probe.probe"], capacity=1001)
    ids = await engine.submit_many(MORE_THAN_TWO_CALLS_TAKE)
    await tasks.claim(engine.pool, "worker-1", [Claim(task_id, uuid4()) for task_id in ids], 60)
    assert await engine.count("status = 'running'") == MORE_THAN_TWO_CALLS_TAKE
    return ids


@on_the_engine
async def test_a_successor_takes_back_everything(engine: Engine) -> None:
    await run_very_many(engine)
    await take_back(engine.pool, {"worker-1": {"by": "guardian"}})
    assert await engine.count("status = 'retrying' AND stall_count = 1") == MORE_THAN_TWO_CALLS_TAKE
    assert await engine.count("suspicion > 0") == 0, "the last ones were not few either"
    (lost,) = await workers.newest(engine.pool)
    assert (lost["state"], lost["stop_reason"]) == ("lost", "died")


@on_the_engine
async def test_a_sweep_takes_back_everything(engine: Engine) -> None:
    await engine.lapse(*await run_very_many(engine))
    heard_at = await engine.pool.fetchval("SELECT clock_timestamp()")
    await recover_stale(engine.pool, heard_at=heard_at, patience_seconds=60)
    assert await engine.count("status = 'retrying' AND stall_count = 1") == MORE_THAN_TWO_CALLS_TAKE
