"""Schedules and the orchestrator: it fires what is due, once, and settles what it started."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta

import pytest

from tests.integration.test_duties import under_way
from tests.support.engine.schedules import Schedule, started
from tests.support.engine.store import A_FAILURE, Engine, on_the_engine, until
from windlass.services.orchestrator.firing import Firing
from windlass.services.orchestrator.relay import Relay
from windlass.shared import db
from windlass.shared.features.registry import FEATURES
from windlass.shared.features.schedules import firing
from windlass.shared.settings import Settings
from windlass.shared.store import outbox, schedules
from windlass.shared.store.schedules import reading

EVERY = timedelta(hours=1)


async def due_in(engine: Engine, seconds: float, name: str = "soon", **fields: object) -> Schedule:
    """Every hour, so that it is due once in a test, however slow that is; and the next time in so many seconds."""
    now = await reading.now(engine.pool)
    made_at = now - EVERY + timedelta(seconds=seconds)
    return await Schedule.made(engine, name, now=made_at, every=round(EVERY.total_seconds()), **fields)


@asynccontextmanager
async def an_orchestrator(engine: Engine) -> AsyncIterator[None]:
    """Without its process."""
    settings = Settings(database_url=engine.database_url)
    pool = await db.open_feature_pool(settings, "orchestrator", most=8)
    relay, fires = Relay(pool, FEATURES), Firing(pool)
    listener = db.Listener(settings, "orchestrator", {outbox.CHANNEL: relay.wake, schedules.CHANNEL: fires.wake})
    try:
        async with under_way(relay.run(), fires.run(), listener.run()):
            yield
    finally:
        pool.terminate()


@on_the_engine
async def test_it_fires_what_is_due_and_records_how_that_ended(engine: Engine) -> None:
    async with an_orchestrator(engine):
        schedule = await due_in(engine, 1)
        await until(lambda: has_started(engine, 1))
        await schedule.finish("bury", error=A_FAILURE)

        async def is_recorded() -> bool:
            return (await schedule.last()).ended_as == "dead"

        await until(is_recorded)
        assert await engine.pool.fetchval("SELECT count(*) FROM outbox") == 0


@on_the_engine
async def test_three_orchestrators_start_many_once(engine: Engine) -> None:
    schedules = [await due_in(engine, 0, f"number {number}") for number in range(40)]
    async with an_orchestrator(engine), an_orchestrator(engine):
        async with an_orchestrator(engine):
            await until(lambda: has_started(engine, 5, or_more=True))
        await until(lambda: has_started(engine, len(schedules), or_more=True))
    assert await started(engine) == len(schedules)
    assert [len(await each.runs()) for each in schedules] == [1] * len(schedules)


@on_the_engine
async def test_a_schedule_that_cannot_be_planned_delays_no_other(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    broken = await due_in(engine, 0, "broken")
    await engine.sql("UPDATE schedules SET every_seconds = NULL, cron = '* * * * *', timezone = 'Nowhere'")
    await due_in(engine, 0, "sound")
    async with an_orchestrator(engine):
        await until(lambda: has_started(engine, 1))
    assert await broken.runs() == []
    assert "schedule_not_fired" in caplog.text


TEN_THOUSAND = """
INSERT INTO schedules (
    schedule_id, user_id, name, every_seconds, target, kind, prepared, overlap, catch_up, catch_up_window_seconds,
    jitter_seconds, anchor_at, last_due_at, next_due_at, next_at)
SELECT gen_random_uuid(), s.user_id, 'number ' || number, 86400, s.target, s.kind, s.prepared, s.overlap, s.catch_up,
       s.catch_up_window_seconds, 0, now(), now(), now() + interval '1 day', now() + interval '1 day'
FROM schedules s, generate_series(1, 10000) AS number
"""


@on_the_engine
async def test_a_look_at_idle_schedules_reads_one_entry_of_an_index(engine: Engine) -> None:
    await Schedule.made(engine, now=await reading.now(engine.pool), every=86400)
    await engine.sql(TEN_THOUSAND)
    await engine.sql("ANALYZE schedules")
    asked = _Asked()
    await firing.seconds_to_next(asked)  # type: ignore[arg-type]
    plan = "\n".join(row[0] for row in await engine.pool.fetch(f"EXPLAIN (ANALYZE) {asked.query}", []))
    assert "schedules_due" in plan
    assert "Rows Removed" not in plan


class _Asked:
    """Keeps the statement that it was given."""

    query = ""

    async def fetchval(self, query: str, *_values: object) -> None:
        self.query = query


@on_the_engine
async def test_a_failure_is_logged_once(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    schedule = await due_in(engine, 0)
    async with an_orchestrator(engine), an_orchestrator(engine):
        await until(lambda: has_started(engine, 1))
        with caplog.at_level(logging.WARNING, "schedules"):
            await schedule.finish("bury", error=A_FAILURE)
            await until(lambda: _is_logged(caplog))
    assert caplog.text.count("schedule_failed") == 1


async def _is_logged(caplog: pytest.LogCaptureFixture) -> bool:
    return "schedule_failed" in caplog.text


async def has_started(engine: Engine, number: int, *, or_more: bool = False) -> bool:
    found = await started(engine)
    return found >= number if or_more else found == number
