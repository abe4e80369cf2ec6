"""Each of the janitor's duties stands behind a wall: it is timed and counted, and one that fails stops no other."""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from uuid import uuid4

import pytest

from tests.support.engine.store import Engine, on_the_engine, until
from windlass.services.janitor import wall
from windlass.services.janitor.calls import Calls
from windlass.services.janitor.duties.bulk import BulkRunner
from windlass.services.janitor.premises import Premises
from windlass.services.janitor.rhythms import TIMES, Rhythm
from windlass.services.janitor.table import DUTIES, Duty, duties_of
from windlass.services.janitor.timer import Timer
from windlass.services.janitor.wall import perform_all
from windlass.shared.filters import Filter
from windlass.shared.metrics.declaring import Instrument
from windlass.shared.metrics.services import JANITOR_DUTY_FAILURES, JANITOR_DUTY_SECONDS, JANITOR_LAST_SUCCESS
from windlass.shared.settings import Settings
from windlass.shared.states import State
from windlass.shared.store.tasks import bulk


def premises_of(engine: Engine) -> Premises:
    settings = Settings(database_url=engine.database_url)
    return Premises(settings, engine.pool, BulkRunner(settings, engine.pool))


def a_timer(at: Premises, call: Callable[[str], None] = lambda _name: None) -> Timer:
    return Timer(at, "janitor-1", on_answer=lambda: None, call=call)


def samples(instrument: Instrument, suffix: str) -> Counter[str]:
    found: Counter[str] = Counter()
    for family in instrument.collect():
        for sample in family.samples:
            if sample.name.endswith(suffix):
                found[sample.labels["duty"]] += int(sample.value)
    return found


def failures() -> Counter[str]:
    return samples(JANITOR_DUTY_FAILURES, "_failures_total")


def done() -> Counter[str]:
    return samples(JANITOR_DUTY_SECONDS, "_seconds_count")


@asynccontextmanager
async def without(engine: Engine, table: str) -> AsyncIterator[None]:
    """A fault that is real: a table that a duty needs is not what it was."""
    await engine.sql(f"ALTER TABLE {table} RENAME TO put_away")
    try:
        yield
    finally:
        await engine.sql(f"ALTER TABLE put_away RENAME TO {table}")


@asynccontextmanager
async def under_way(*work: Awaitable[None]) -> AsyncIterator[Sequence[asyncio.Future[None]]]:
    running = [asyncio.ensure_future(each) for each in work]
    try:
        yield running
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


def test_every_duty_has_a_name_of_its_own_and_the_metric_knows_it() -> None:
    names = [duty.name for duty in DUTIES]
    assert len(set(names)) == len(names)
    declared = JANITOR_LAST_SUCCESS._documentation.partition("`duty` is ")[2].replace(" or ", ", ").split(", ")
    assert declared == names
    assert {duty.rhythm for duty in DUTIES} == set(Rhythm)
    assert set(TIMES) == {Rhythm.MINUTE, Rhythm.HOUR}, "the others keep time without RabbitMQ"


@pytest.mark.parametrize("rhythm", list(TIMES))
@on_the_engine
async def test_all_duties_of_a_ring_are_done_and_timed(engine: Engine, rhythm: Rhythm) -> None:
    wall.begin()
    failed, timed = failures(), done()
    await perform_all(duties_of(rhythm), premises_of(engine))
    assert failures() - failed == Counter()
    assert done() - timed == Counter(duty.name for duty in duties_of(rhythm))


@on_the_engine
async def test_a_duty_that_fails_costs_the_others_of_its_ring_nothing(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    """The breakers' duty cannot read its table. The duties after it still run."""
    before, timed = failures(), done()
    await engine.submit()
    async with without(engine, "provider_results"):
        outcomes = await perform_all(duties_of(Rhythm.MINUTE), premises_of(engine))
    failed = [duty.name for duty, outcome in zip(duties_of(Rhythm.MINUTE), outcomes, strict=True) if outcome.error]
    assert failed == ["breakers", "reconciler"]
    assert failures() - before == Counter(failed)
    assert done() - timed == Counter(duty.name for duty in duties_of(Rhythm.MINUTE))
    assert any("duty breakers" in record.getMessage() for record in caplog.records)


@on_the_engine
async def test_an_error_that_nobody_thought_of_is_told_with_its_trace(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    turns = []

    async def stumble(_at: Premises) -> None:
        turns.append("first")
        raise KeyError("a column")

    async def go_on(_at: Premises) -> None:
        turns.append("second")

    duties = [Duty("texts", Rhythm.MINUTE, stumble), Duty("tallies", Rhythm.MINUTE, go_on)]
    await perform_all(duties, premises_of(engine))
    assert turns == ["first", "second"]
    (told,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "duty texts failed" in told.getMessage()
    assert told.exc_info


@on_the_engine
async def test_the_timer_buries_the_expired_although_nothing_stale_can_be_taken_back(engine: Engine) -> None:
    """And goes on: as soon as it can, it takes back what is stale."""
    lost = await engine.running()
    await engine.lapse(lost.task_id)
    old = await engine.submit(max_age_seconds=60)
    await engine.outlive(old)
    premises = premises_of(engine)
    premises.settings = premises.settings.model_copy(update={"safety_poll_seconds": 0.1})
    before = failures()
    await engine.sql("ALTER TABLE tasks ADD CONSTRAINT a_fault CHECK (status <> 'retrying') NOT VALID")
    try:
        async with under_way(a_timer(premises).run()) as (timer,):
            await until(lambda: _is(engine, old, "dead"))
            await until(lambda: _counted(before, "stale"))
            await engine.sql("ALTER TABLE tasks DROP CONSTRAINT a_fault")
            await until(lambda: _is(engine, lost.task_id, "retrying"))
            assert not timer.done()
    finally:
        await engine.sql("ALTER TABLE tasks DROP CONSTRAINT IF EXISTS a_fault")


@on_the_engine
async def test_bulk_jobs_go_on_although_dependents_cannot_be_told_and_so_do_these_later(engine: Engine) -> None:
    parent = await engine.submit()
    child = await engine.submit_many(501, depends_on=[parent])
    premises = premises_of(engine)
    calls = Calls(premises)
    before = failures()
    async with under_way(calls.listen(), calls.run_bulk_jobs()) as running:
        await until(lambda: _listens(engine))
        await engine.cancel(parent)
        async with without(engine, "task_dependencies"):
            calls.call("dependents")
            await until(lambda: _counted(before, "dependents"))
            bulk_id = uuid4()
            wanted = Filter(status=[State.DEAD], user_id="nobody")
            await bulk.accept(engine.pool, bulk_id, "retry", wanted, matched=0, user_id="ann", scope_user_id=None)
            await until(lambda: _bulk_is(engine, bulk_id, "finished"))
        await until(lambda: _is(engine, child[-1], "dead"))
        assert not any(each.done() for each in running)


@on_the_engine
async def test_a_bulk_job_that_cannot_be_done_holds_up_no_other(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = uuid4(), uuid4()
    dead = await engine.dead()
    for bulk_id in sorted((first, second)):
        await bulk.accept(engine.pool, bulk_id, "retry", Filter(), matched=1, user_id="ann", scope_user_id=None)
    broken, whole = sorted((first, second))
    await engine.sql("""UPDATE bulk_jobs SET filter = '{"status": 7}' WHERE bulk_id = $1""", broken)
    before = failures()
    runner = BulkRunner(Settings(database_url=engine.database_url, safety_poll_seconds=600), engine.pool)
    while await runner.do_a_round() == 0:
        pass
    assert await _bulk_is(engine, whole, "finished")
    assert await engine.status(dead) == "queued"
    assert (failures() - before)["bulk"] == 1, "it is put aside for a while"
    assert any(str(broken) in record.getMessage() for record in caplog.records)


async def _is(engine: Engine, task_id: object, status: str) -> bool:
    return bool(await engine.pool.fetchval("SELECT status = $2 FROM tasks WHERE task_id = $1", task_id, status))


async def _bulk_is(engine: Engine, bulk_id: object, state: str) -> bool:
    return bool(await engine.pool.fetchval("SELECT state = $2 FROM bulk_jobs WHERE bulk_id = $1", bulk_id, state))


async def _listens(engine: Engine) -> bool:
    query = (
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name LIKE 'windlass-janitor-listen %' AND query <> ''"
    )
    return bool(await engine.pool.fetchval(query))


async def _counted(before: Counter[str], duty: str) -> bool:
    return (failures() - before)[duty] > 0
