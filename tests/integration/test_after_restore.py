"""After a restore: no worker, number or cursor of the lost future fits any more, and nothing else is lost."""

import asyncio
import re
from uuid import UUID

from asyncpg import Record as Row

from tests.support.engine.dispatching import would_start
from tests.support.engine.media import ordered
from tests.support.engine.one_order import latest_order
from tests.support.engine.store import Engine, on_the_engine, until
from tests.support.engine.workflows import a_workflow
from windlass.services.admin import after_restore
from windlass.services.admin.after_restore import Report, put_right
from windlass.services.cli import exit_codes
from windlass.shared.features.workflows import operations as workflows
from windlass.shared.settings import Settings
from windlass.shared.store import orders
from windlass.shared.store.operating import reports, restoring, workers
from windlass.shared.store.reading import commit_order, events
from windlass.shared.store.reading.commit_order import Position


async def restored(engine: Engine, *, rehearse: bool = False) -> Report:
    """Forced: the test itself is connected, as a service would be."""
    return await put_right(Settings(database_url=engine.database_url), rehearse=rehearse, force=True)


async def everything(engine: Engine) -> list[list[Row]]:
    tables = ("tasks", "task_events", "workers", "service_reports", "generations", "audit_log", "pg_sequences")
    return [await engine.pool.fetch(f"SELECT * FROM {table} ORDER BY 1, 2") for table in tables]


async def a_worker(engine: Engine) -> None:
    await workers.register(engine.pool, "worker-1", hostname="here", pid=1, queues=["probe.probe"], capacity=2)


@on_the_engine
async def test_a_worker_of_that_time_can_neither_renew_nor_report_nor_end_its_task(engine: Engine) -> None:
    attempt = await engine.running()
    assert (await restored(engine)).running == 1
    assert await engine.renew(attempt) == [(False, False)]
    assert not await engine.say(attempt, progress={"message": "still here"})
    assert await engine.finish(attempt) is None
    row = await engine.row(attempt.task_id)
    assert (row["status"], row["retry_count"], row["interrupt_count"]) == ("queued", 0, 1)
    again = await engine.start(attempt.task_id)
    assert again.attempt > attempt.attempt + 1, "an attempt of the lost future may have stored files under its number"
    assert await engine.finish(attempt) is None
    assert await engine.finish(again) == "completed"


@on_the_engine
async def test_the_history_says_why(engine: Engine) -> None:
    attempt = await engine.running()
    await restored(engine)
    assert await engine.story(attempt.task_id) == ["submit", "claim", "restore", "interrupt"]
    restore, interrupt = (await engine.history(attempt.task_id))[2:]
    assert "restored from a backup" in restore["data"]["reason"]
    assert (restore["data"]["status"], interrupt["data"]["status"]) == ("running", "queued")


@on_the_engine
async def test_a_cancel_that_was_asked_for_is_kept(engine: Engine) -> None:
    attempt = await engine.running()
    assert await engine.cancel(attempt.task_id) == "running"
    await restored(engine)
    assert await engine.status(attempt.task_id) == "cancelled"


@on_the_engine
async def test_a_task_that_waited_can_be_started_at_once(engine: Engine) -> None:
    task_id = await engine.submit()
    report = await restored(engine)
    assert report.waiting == 1
    assert (await engine.row(task_id))["attempt"] == 0
    assert await would_start(engine) == [task_id]


@on_the_engine
async def test_a_reader_that_is_ahead_of_the_history_goes_on_and_misses_nothing(engine: Engine) -> None:
    waiting, running = await engine.submit(), await engine.running()
    await restored(engine)
    again = await engine.start(running.task_id)
    await engine.finish(again)
    for task_id, expected in ((waiting, ["restore"]), (running.task_id, ["restore", "interrupt", "claim", "complete"])):
        seen_in_the_lost_future = 40
        rows = await events.follow(engine.pool, task_id, after=seen_in_the_lost_future, most_rows=200, most_bytes=10**6)
        assert [row["type"] for row in rows] == expected
        whole = await events.follow(engine.pool, task_id, after=0, most_rows=200, most_bytes=10**6)
        last = whole[-1]["seq"]
        while last < whole[0]["last_seq"]:  # as streams do it
            whole += await events.follow(engine.pool, task_id, after=last, most_rows=200, most_bytes=10**6)
            last = whole[-1]["seq"]
        assert [row["type"] for row in whole] == await engine.story(task_id)


@on_the_engine
async def test_what_has_ended_stays_as_it_is(engine: Engine) -> None:
    completed, dead = await engine.completed(), await engine.dead()
    before = [await engine.row(completed), await engine.row(dead)]
    report = await restored(engine)
    assert (report.running, report.waiting) == (0, 0)
    assert [await engine.row(completed), await engine.row(dead)] == before


@on_the_engine
async def test_a_workflow_goes_on_under_numbers_that_nobody_has_seen(engine: Engine) -> None:
    """What runs of it comes back to wait: held where it stands, cancelled where that was wanted, counted everywhere."""
    graph = {"bad": [], "running": [], "next": ["running"]}
    done = await a_workflow(engine, {"only": []})
    await done.finish("only")
    going, stopped, unwanted = [
        await a_workflow(engine, graph, failure_threshold=threshold) for threshold in (None, 1, None)
    ]
    for flow in (going, stopped, unwanted):
        await flow.start("running")
    await stopped.finish("bad", "bury")
    await workflows.cancel(engine.pool, unwanted.workflow_id)
    before = {flow: await flow.row() for flow in (done, going, stopped, unwanted)}

    assert (await restored(engine)).running == 3
    for flow, row in before.items():
        assert (await flow.row()).last_seq >= row.last_seq + restoring.SEQ_STEP
    assert (await done.row()).completed_at == before[done].completed_at
    assert [await flow.status() for flow in before] == ["completed", "running", "escalated", "cancelled"]
    assert (await going.story())[-1] == "restore"
    assert (await stopped.statuses(), await stopped.held()) == (
        {"bad": "dead", "running": "queued", "next": "blocked"},
        {"running", "next"},
    )
    assert await workflows.count_drift(engine.pool) == []
    await going.finish("running")
    assert (await going.statuses())["next"] == "queued"


@on_the_engine
async def test_an_order_stays_open_and_is_named(engine: Engine) -> None:
    """The next attempt looks for it at the provider, as after a kill."""
    await engine.provide("atelier", limit=3, actors=["media"])
    order = await ordered(engine, task={"provider": "atelier"})
    await engine.submit(actor="media", provider="atelier")
    report = await restored(engine)
    (named,) = report.open_orders
    assert (named.task_id, named.generation_id, named.status) == (
        order.attempt.task_id,
        order.generation_id,
        "intended",
    )
    (provider,) = report.providers
    assert (provider.name, provider.open_orders, provider.unordered) == ("atelier", 1, 1)
    row = await engine.row(order.attempt.task_id)
    assert (row["status"], row["job_open"]) == ("queued", True)
    known = await latest_order(engine.pool, order.attempt.task_id)
    assert known is not None
    assert known["status"] == "intended"
    assert not await orders.move(engine.pool, order.attempt, order.generation_id, "place", job_id="late")


@on_the_engine
async def test_processes_of_that_time_are_forgotten(engine: Engine) -> None:
    await a_worker(engine)
    await reports.say(engine.pool, "janitor", "one", healthy=True, details={})
    report = await restored(engine)
    assert (report.workers, report.reports) == (1, 1)
    assert await workers.newest(engine.pool) == []
    assert await reports.recent(engine.pool, within_seconds=3600) == []


@on_the_engine
async def test_numbers_go_on_beyond_those_that_may_have_been_seen(engine: Engine) -> None:
    largest = "SELECT coalesce(max(audit_id), 0) FROM audit_log"
    await restored(engine)
    first = await engine.pool.fetchval(largest)
    await engine.submit()
    await restored(engine)
    assert await engine.pool.fetchval(largest) >= first + restoring.NUMBER_STEP


@on_the_engine
async def test_a_dry_run_tells_the_same_and_changes_nothing(engine: Engine) -> None:
    await a_worker(engine)
    await engine.running()
    await engine.submit()
    before = await everything(engine)
    rehearsal = await restored(engine, rehearse=True)
    assert await everything(engine) == before
    report = await restored(engine)
    assert (rehearsal.running, rehearsal.waiting, rehearsal.workers) == (1, 1, 1)
    assert (report.running, report.waiting, report.workers) == (1, 1, 1)
    assert await everything(engine) != before


@on_the_engine
async def test_a_second_run_finds_nothing_to_do(engine: Engine) -> None:
    await a_worker(engine)
    running, waiting = await engine.running(), await engine.submit()
    assert (await restored(engine)).is_needed
    before = await everything(engine)
    assert not (await restored(engine)).is_needed
    assert await everything(engine) == before
    await engine.start(running.task_id)
    third = await restored(engine)
    assert (third.is_needed, third.running, third.waiting) == (True, 1, 0), "only what has moved since"
    assert await engine.story(waiting) == ["submit", "restore"]


@on_the_engine
async def test_it_refuses_while_somebody_is_connected_or_was_heard_of_lately(engine: Engine) -> None:
    await a_worker(engine)
    attempt = await engine.running()
    settings = Settings(database_url=engine.database_url)

    async def nobody_of_an_earlier_test_is_left() -> bool:
        return {each.name for each in await restoring.connected(engine.pool)} <= {"windlass-test"}

    await until(nobody_of_an_earlier_test_is_left)
    refused = await put_right(settings, rehearse=False, force=False)
    assert not refused.is_needed
    (connected, heard) = refused.refused_because
    assert connected.startswith("windlass-test is connected")
    assert re.match(r"worker worker-1 was heard of \d+ s ago", heard)
    assert await engine.status(attempt.task_id) == "running"


@on_the_engine
async def test_events_of_another_server_come_before_what_happens_now(engine: Engine) -> None:
    """Restored by pg_dump into a new server, whose transactions begin to count anew."""
    task_id = await engine.completed()
    await engine.sql("UPDATE task_events SET xid = '900000000000'")
    lost = Position(900_000_000_007, UUID(int=7), 12)
    assert (await restored(engine)).renumbered_events == 3
    assert not await commit_order.is_known(engine.pool, lost)
    beginning = await restoring.newest_beginning(engine.pool)
    assert beginning is not None
    after = await engine.completed()
    async with asyncio.timeout(60):
        while (look := await commit_order.look(engine.pool, beginning, at_most=100)).has_unsettled:
            pass
    rows = await commit_order.between(
        engine.pool, beginning, look.end, commit_order.Wanted(), most_rows=100, most_bytes=10**6
    )
    assert {row["task_id"] for row in rows} == {after}
    whole = await commit_order.between(
        engine.pool, commit_order.BEGINNING, look.end, commit_order.Wanted(), most_rows=100, most_bytes=10**6
    )
    assert [row["task_id"] for row in whole] == [task_id] * 3 + [after] * 3


def test_its_exit_codes_are_those_of_the_command_line() -> None:
    assert (after_restore.FAILED, after_restore.UNREACHABLE) == (exit_codes.FAILED, exit_codes.UNREACHABLE)
