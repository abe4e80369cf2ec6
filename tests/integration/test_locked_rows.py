"""A row that somebody outside keeps locked: its own task waits, and nobody else does."""

import asyncio
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from uuid import UUID

import pytest

from tests.support.engine.replies import end
from tests.support.engine.store import Engine, on_the_engine
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.waiting import wait_until
from windlass.services.actors.worker.attempts import Attempts
from windlass.services.actors.worker.clock import boot_time
from windlass.services.actors.worker.context.context import Context
from windlass.services.actors.worker.ending.retries import ending_of_success
from windlass.services.actors.worker.leases.heartbeat import Heartbeat
from windlass.services.actors.worker.leases.lease_watch import LeaseWatch
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store import tasks
from windlass.shared.store.operating import workers
from windlass.shared.store.tasks import Claimed, Report

A_STRANGER = "SELECT 1 FROM tasks WHERE task_id = $1 FOR UPDATE"
SOON = 20
"""Seconds within which a call comes back that waits for nobody; for a lock it would wait longer."""


async def several(engine: Engine, number: int = 3) -> list[Claimed]:
    return [await engine.start(task_id) for task_id in await engine.submit_many(number)]


def leases_of(attempts: list[Claimed]) -> dict[UUID, UUID]:
    return {attempt.claim_token: attempt.task_id for attempt in attempts}


async def renewed(engine: Engine, attempts: list[Claimed]) -> list[str]:
    rows = await asyncio.wait_for(workers.renew(engine.pool, "worker-1", leases_of(attempts), 60), SOON)
    said = {row["claim_token"]: "skipped" if row["skipped"] else "renewed" if row["owned"] else "lost" for row in rows}
    return [said[attempt.claim_token] for attempt in attempts]


@on_the_engine
async def test_a_renewal_skips_the_row_that_is_locked_and_renews_the_others(engine: Engine) -> None:
    attempts = await several(engine)
    locked = await engine.row(attempts[1].task_id)
    async with engine.holding(A_STRANGER, locked["task_id"]):
        assert await renewed(engine, attempts) == ["renewed", "skipped", "renewed"]
        assert await engine.row(locked["task_id"]) == locked
    assert await renewed(engine, attempts) == ["renewed"] * 3


@on_the_engine
async def test_what_is_lost_is_called_lost_whoever_has_locked_it(engine: Engine) -> None:
    over, lapsed, taken = attempts = await several(engine)
    await engine.finish(over)
    await engine.lapse(lapsed.task_id, taken.task_id)
    await engine.sql("UPDATE tasks SET claim_token = gen_random_uuid() WHERE task_id = $1", taken.task_id)
    everything = "SELECT 1 FROM tasks FOR UPDATE"
    async with engine.holding(everything):
        assert await renewed(engine, attempts) == ["lost"] * 3


@on_the_engine
async def test_a_renewal_brings_back_a_cancel_also_of_a_row_that_is_locked(engine: Engine) -> None:
    (attempt,) = await several(engine, 1)
    await engine.cancel(attempt.task_id)
    async with engine.holding(A_STRANGER, attempt.task_id):
        (row,) = await workers.renew(engine.pool, "worker-1", leases_of([attempt]), 60)
    assert (row["skipped"], row["cancel_requested"]) == (True, True)


@on_the_engine
async def test_leases_are_renewed_although_the_worker_s_own_row_is_locked(engine: Engine) -> None:
    attempts = await several(engine)
    await workers.register(engine.pool, "worker-1", hostname="h", pid=1, queues=["probe.probe"], capacity=1)
    async with engine.holding("SELECT 1 FROM workers FOR UPDATE"):
        assert await renewed(engine, attempts) == ["renewed"] * 3


@on_the_engine
async def test_reports_of_rows_that_are_locked_are_left_to_be_offered_again(engine: Engine) -> None:
    attempts = await several(engine)
    first, second, lost = [
        Report(each.task_id, each.attempt, each.claim_token, 1, events=[{"type": "output", "data": {"text": "word"}}])
        for each in attempts
    ]
    await engine.finish(attempts[2])
    async with engine.holding(A_STRANGER, first.task_id):
        heard = await asyncio.wait_for(tasks.report(engine.pool, [first, second, lost]), SOON)
    assert (heard.kept, heard.skipped) == ({second.task_id}, {first.task_id})
    again = await tasks.report(engine.pool, [first, second])
    assert (again.kept, again.skipped) == ({first.task_id}, set())
    assert [(await engine.story(each.task_id)).count("output") for each in (first, second)] == [1, 1]


@pytest.fixture
def writer(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    """With less patience for locks: these tests wait until it is over."""
    monkeypatch.setitem(db.TIMEOUTS, "lock_timeout", "300ms")
    writer = Writer(Settings(database_url=database_url), "worker-1", on_claim=lambda _tokens, _lease_end: None)
    writer.start()
    yield writer
    writer.close(timeout=60)
    writer._loop.close()


def test_ends_go_on_while_one_is_locked_and_that_one_when_it_is_free(database_url: str, writer: Writer) -> None:
    locked, *others, late = ask(database_url, lambda engine: several(engine, 6))
    with ThreadPoolExecutor(6) as pool:
        with held_up(database_url, A_STRANGER, locked.task_id):
            waiting = pool.submit(end, writer, ending_of_success(locked, "kept"))
            ended = [pool.submit(end, writer, ending_of_success(each, "good")) for each in others]
            assert [each.result(60) for each in ended] == ["completed"] * 4
            assert pool.submit(end, writer, ending_of_success(late, "good")).result(60) == "completed"
            assert not waiting.done()
        assert waiting.result(60) == "completed"

    async def look(engine: Engine) -> None:
        assert (await engine.row(locked.task_id))["result"] == "kept"
        assert await engine.story(locked.task_id) == ["submit", "claim", "complete"]

    ask(database_url, look)


def test_what_an_attempt_said_while_it_was_locked_is_written_before_its_end(database_url: str, writer: Writer) -> None:
    locked, other = (
        Context(each, "worker-1", on_report=writer.report)
        for each in ask(database_url, lambda engine: several(engine, 2))
    )

    def words_of(context: Context) -> str:
        async def look(engine: Engine) -> str:
            said = [each for each in await engine.history(context.task_id) if each["type"] == "output"]
            return "".join(each["data"]["text"] for each in said)

        return ask(database_url, look)

    def unwritten() -> Report | None:
        """None as well in the moment in which it is offered again."""
        return writer._reports.unwritten.get(locked.task.claim_token)

    with ThreadPoolExecutor(1) as pool, held_up(database_url, A_STRANGER, locked.task_id):
        for number in range(1, 4):
            locked.output(f"{number} ")
            other.output(f"{number} ")
            wait_until("the other is heard", lambda: words_of(other).endswith(f"{number} "))  # noqa: B023
        wait_until("it is kept", lambda: (kept := unwritten()) is not None and kept.number == 3)
        ending = pool.submit(end, writer, ending_of_success(locked.task, "done"))
        wait_until("its end has taken up what was said", lambda: not writer._reports.unwritten)
    assert ending.result(60) == "completed"
    assert words_of(locked) == "1 2 3 "

    async def look(engine: Engine) -> list[str]:
        return (await engine.story(locked.task_id))[-2:]

    assert ask(database_url, look) == ["output", "complete"]


def test_an_attempt_whose_row_stays_locked_is_stopped_before_its_lease_ends_and_alone(database_url: str) -> None:
    settings = Settings(
        database_url=database_url,
        lease_seconds=30,
        heartbeat_seconds=0.2,
        stop_grace_seconds=10,
        lease_margin_seconds=2,
    )
    spare = settings.stop_grace_seconds + settings.lease_margin_seconds

    async def start_them(engine: Engine) -> list[Claimed]:
        return [await engine.start(each, lease_seconds=settings.lease_seconds) for each in await engine.submit_many(2)]

    async def lease_lasts(engine: Engine) -> bool:
        return await engine.count("status = 'running' AND lease_expires_at > clock_timestamp()") == 2

    with guardian(settings) as (watch, heard):
        ends_at = boot_time() + settings.lease_seconds
        locked, free = (Context(each, "worker-1", on_report=lambda _: None) for each in ask(database_url, start_them))
        watch.claimed([locked.task.claim_token, free.task.claim_token], ends_at)
        attempts = Attempts(on_over=watch.let_go)
        attempts.add(locked)
        attempts.add(free)
        with held_up(database_url, A_STRANGER, locked.task_id), beating(settings, attempts, watch):
            wait_until("it is stopped", lambda: locked.stop_reason)
            assert ask(database_url, lease_lasts)
            assert set(heard()) == {ends_at - spare}, "the least of the leases binds, however often others are renewed"
            attempts.over(locked)
            assert heard()[-1] > ends_at - spare, "and no longer than it is worked under"
        assert (locked.stop_reason, free.stop_reason) == ("stopping", None)


@contextmanager
def guardian(settings: Settings) -> Iterator[tuple[LeaseWatch, Callable[[], list[float]]]]:
    """What tells a guardian, and what it has heard since it was last asked."""
    ours, theirs = os.pipe()
    try:
        watch = LeaseWatch(settings, theirs, guardian_gone=lambda: None)
        yield watch, lambda: [float(line) for line in os.read(ours, 65536).split()]
    finally:
        os.close(ours)
        os.close(theirs)


@contextmanager
def beating(settings: Settings, attempts: Attempts, watch: LeaseWatch) -> Iterator[None]:
    heartbeat = Heartbeat(settings, "worker-1", attempts, watch=watch, condemn=print, drain=print)
    heartbeat.start()
    try:
        yield
    finally:
        heartbeat.stop()
        heartbeat._loop.close()
