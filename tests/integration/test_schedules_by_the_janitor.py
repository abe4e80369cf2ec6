"""Schedules and the janitor's loop: it sleeps until one is due or somebody calls, and asks nothing meanwhile."""

import asyncio
import logging
import time
from datetime import timedelta

import pytest

from tests.integration.test_duties import a_timer, premises_of, under_way
from tests.support.engine.schedules import Schedule, started
from tests.support.engine.store import A_FAILURE, Engine, on_the_engine, until
from windlass.services.janitor.calls import Calls
from windlass.services.janitor.next_due import NextDue
from windlass.services.janitor.schedules import keep_schedules
from windlass.shared.store.operating.looks import look
from windlass.shared.store.schedules import reading

EVERY = timedelta(hours=1)


async def due_in(engine: Engine, seconds: float, name: str = "soon", **fields: object) -> Schedule:
    """Every hour, so that it is due once in a test, however slow that is; and the next time in so many seconds."""
    now = await reading.now(engine.pool)
    made_at = now - EVERY + timedelta(seconds=seconds)
    return await Schedule.made(engine, name, now=made_at, every=round(EVERY.total_seconds()), **fields)


@on_the_engine
async def test_it_starts_what_is_due_and_goes_on_with_what_waits_by_being_called(engine: Engine) -> None:
    at = premises_of(engine)
    calls = Calls(at)
    timer = a_timer(at, calls.call)
    async with under_way(timer.run(), calls.listen(), keep_schedules(at)):

        async def is_listening() -> bool:
            return hasattr(at, "listening")

        await until(is_listening)
        schedule = await due_in(engine, 1, overlap="queue-one")

        async def has_started(number: int = 1) -> bool:
            return await started(engine) == number

        await until(has_started)
        await schedule.finish("bury", error=A_FAILURE)

        async def is_settled() -> bool:
            return (await schedule.runs())[0].ended_as == "dead"

        await until(is_settled)


@on_the_engine
async def test_three_janitors_start_many_once(engine: Engine) -> None:
    schedules = [await due_in(engine, 0.5, f"number {number}") for number in range(40)]
    premises = [premises_of(engine) for _ in range(3)]
    for each in premises:
        each.next_schedule.in_seconds((await look(engine.pool)).schedule_seconds)
    async with under_way(*(keep_schedules(each) for each in premises)) as running:

        async def all_started() -> bool:
            return await started(engine) == len(schedules)

        running[0].cancel()  # in the middle, or before
        await until(all_started)
        assert [len(await each.runs()) for each in schedules] == [1] * len(schedules)


TEN_THOUSAND = """
INSERT INTO schedules (
    schedule_id, user_id, name, every_seconds, target, kind, prepared, overlap, catch_up, catch_up_window_seconds,
    jitter_seconds, anchor_at, last_due_at, next_due_at, next_at)
SELECT gen_random_uuid(), s.user_id, 'number ' || number, 86400, s.target, s.kind, s.prepared, s.overlap, s.catch_up,
       s.catch_up_window_seconds, 0, now(), now(), now() + interval '1 day', now() + interval '1 day'
FROM schedules s, generate_series(1, 10000) AS number
"""


@on_the_engine
async def test_idle_schedules_cost_no_statement(engine: Engine) -> None:
    await Schedule.made(engine, now=await reading.now(engine.pool), every=86400)
    await engine.sql(TEN_THOUSAND)
    await engine.sql("ANALYZE schedules")
    plan = await engine.pool.fetch("EXPLAIN SELECT min(next_at) FROM schedules WHERE next_at IS NOT NULL")
    assert "schedules_due" in str(plan), "the one look that finds the next reads one entry"
    at = premises_of(engine)
    at.next_schedule.in_seconds((await look(engine.pool)).schedule_seconds)
    async with under_way(keep_schedules(at)) as (running,):
        asked: list[str] = []

        async def has_asked() -> bool:
            return bool(asked)

        at.pool = _Asked(asked)  # type: ignore[assignment]
        for _ in range(20):
            at.next_schedule.in_seconds(3000)  # as the timer says at each of its looks
            await asyncio.sleep(0)
        assert asked == []
        at.next_schedule.in_seconds(0)
        await until(has_asked)
        assert not running.done(), "what fails is tried again"


class _Asked:
    """Notes that it was asked, and has no answer."""

    def __init__(self, asked: list[str]) -> None:
        self._asked = asked

    async def fetch(self, query: str, *_values: object, **_options: object) -> None:
        self._asked.append(query)
        raise ConnectionError("away")


@on_the_engine
async def test_a_failure_is_said_in_the_log_once(engine: Engine, caplog: pytest.LogCaptureFixture) -> None:
    schedule = await due_in(engine, 0)
    at = premises_of(engine)
    at.next_schedule.called(schedule.schedule_id)
    async with under_way(keep_schedules(at)):

        async def has_started() -> bool:
            return await started(engine) == 1

        await until(has_started)
        await schedule.finish("bury", error=A_FAILURE)
        with caplog.at_level(logging.WARNING, "janitor"):
            at.next_schedule.called(schedule.schedule_id)

            async def is_said() -> bool:
                return "failed, due" in caplog.text

            await until(is_said)
    assert caplog.text.count("failed, due") == 1


def test_it_wakes_for_a_sooner_time_and_for_a_call_and_for_nothing_else() -> None:
    async def run() -> None:
        next_due = NextDue()
        waiting = asyncio.ensure_future(next_due.wait())
        next_due.in_seconds(1000)
        next_due.in_seconds(2000)
        for _ in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        began = time.monotonic()
        next_due.in_seconds(0.05)
        await waiting
        assert time.monotonic() - began >= 0.04

    asyncio.run(run())
