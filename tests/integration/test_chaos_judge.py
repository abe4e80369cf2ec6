"""The judge of storms on real rows: what the engine writes is right in its eyes, what a broken one writes is not."""

import asyncio

from tests.chaos.breaking.catalogue import MUTATIONS
from tests.chaos.breaking.changes import Mutation, alter
from tests.chaos.judge.checker import judge, settle, tell
from tests.chaos.judge.violation import COMPLETED_WRONGLY, UNFINISHED, Violation
from tests.chaos.memory.ledger import install_ledger
from tests.chaos.record import Accepted, Fault, Record
from tests.support.engine.store import Engine, an_engine
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Claimed


def judged(record: Record, database_url: str) -> list[Violation]:
    install_ledger(database_url)
    return judge(record, database_url, bound_seconds=60, lease_seconds=30)


async def lose_lease(engine: Engine, attempt: Claimed) -> None:
    await engine.lapse(attempt.task_id)
    await tasks.stall(engine.pool)
    await engine.become_due(attempt.task_id)


def a_stale_end(database_url: str) -> Record:
    """The first attempt loses its lease, the second one runs, and then the first one brings its result."""

    async def happen() -> Record:
        async with an_engine(database_url) as engine:
            first = await engine.running(worker="worker-1")
            await lose_lease(engine, first)
            second = await engine.start(first.task_id, worker="worker-2")
            results = {n: {"echo": "mark", "attempt": n, "worker_id": f"worker-{n}"} for n in (1, 2)}
            await engine.finish(first, result=results[1])
            await engine.finish(second, result=results[2])
            task_id = str(first.task_id)
            accepted = Accepted(
                task_id, "probe", "probe", (await engine.row(first.task_id))["created_at"].timestamp(), "mark"
            )
            return Record(accepted={task_id: accepted}, faults=[Fault(1, "the worker froze", accepted.at, accepted.at)])

    return asyncio.run(happen())


def the(name: str) -> Mutation:
    return next(mutation for mutation in MUTATIONS if mutation.name == name)


def test_what_the_engine_writes_is_right(database_url: str) -> None:
    async def happen() -> None:
        async with an_engine(database_url) as engine:
            result = {"echo": "mark", "attempt": 1, "worker_id": "worker-1"}
            assert await engine.finish(await engine.running(), result=result) == "completed"
            revived = await engine.dead()
            assert await engine.revive(revived) == "queued"
            again = await engine.start(revived)
            assert await engine.finish(again, result={**result, "attempt": 2}) == "completed"
            interrupted = await engine.running()
            assert await engine.finish(interrupted, "interrupt") == "queued"
            assert await engine.cancel(interrupted.task_id) == "cancelled"

    asyncio.run(happen())
    assert settle(database_url, within=5) is not None
    assert judged(Record(), database_url) == []


def test_a_task_that_waits_for_ever_is_found_and_told(database_url: str) -> None:
    async def happen() -> str:
        async with an_engine(database_url) as engine:
            return str(await engine.submit())

    task_id = asyncio.run(happen())
    assert settle(database_url, within=0.1) is None
    record = Record(accepted={task_id: Accepted(task_id, "probe", "probe", 0.0, "mark")})
    (violation,) = judged(record, database_url)
    assert violation.criterion == UNFINISHED
    assert task_id in tell(violation, record, database_url)


def test_a_stale_end_is_refused_by_the_engine_and_found_where_it_is_not(database_url: str) -> None:
    assert judged(a_stale_end(database_url), database_url) == []
    alter(the("no-fence"), database_url)
    record = a_stale_end(database_url)
    (violation,) = judged(record, database_url)
    assert violation.criterion == COMPLETED_WRONGLY
    story = tell(violation, record, database_url)
    assert "the fault before it: number 1, the worker froze" in story
    assert [word for word in ("type=submit", "type=stall", "type=complete") if word not in story] == []
