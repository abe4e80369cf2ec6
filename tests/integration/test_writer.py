"""The group-committing writer: many threads, one call, and one bad value that harms nobody else."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.engine.replies import end
from tests.support.engine.store import Engine
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.engine.workflows import a_workflow
from tests.support.servers import databases
from tests.support.waiting import wait_until
from windlass.services.actors.worker.context.context import Context
from windlass.services.actors.worker.ending.retries import ending_of_success
from windlass.services.actors.worker.writing.group_commit import GroupCommit
from windlass.services.actors.worker.writing.reports import REPORT_EVERY_SECONDS
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared import db
from windlass.shared.settings import Settings
from windlass.shared.store.rows import TaskEventRow
from windlass.shared.store.tasks import Claimed

GOOD = 30
A_TASK = "SELECT 1 FROM tasks WHERE task_id = $1 FOR NO KEY UPDATE"
WRITER = "application_name LIKE 'windlass-actors-writer %'"


@pytest.fixture
def writer(database_url: str) -> Iterator[Writer]:
    writer = Writer(Settings(database_url=database_url), "worker-1", on_claim=lambda _tokens, _lease_end: None)
    writer.start()
    yield writer
    writer.close(timeout=60)
    writer._loop.close()


@contextmanager
def threads(number: int) -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(number) as pool:
        yield pool


def gathered(batcher: GroupCommit[Any, Any]) -> int:
    return len(batcher._gathered)


UNSTORABLE = {
    "a NUL": "nul\0",
    "an impossible number": 10**200_000,
    "half a character": "\ud800",
    "an object": object(),
}


@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE)
def test_of_thirty_good_ends_and_a_bad_one_in_one_call_thirty_are_written_and_one_fails_alone(
    database_url: str, writer: Writer, value: Any
) -> None:
    async def start_them(engine: Engine) -> list[Claimed]:
        return [await engine.start(task_id) for task_id in await engine.submit_many(GOOD + 2)]

    first, bad, *good = ask(database_url, start_them)
    with threads(GOOD + 2) as pool:
        with held_up(database_url, A_TASK, first.task_id):
            # While the writer waits for this one, the others gather behind it.
            under_way = pool.submit(end, writer, ending_of_success(first, "first"))
            wait_until("the writer waits", lambda: writer_waits(database_url))
            answers = [pool.submit(end, writer, ending_of_success(attempt, "good")) for attempt in good[: GOOD // 2]]
            culprit = pool.submit(end, writer, ending_of_success(bad, value))
            answers += [pool.submit(end, writer, ending_of_success(attempt, "good")) for attempt in good[GOOD // 2 :]]
            wait_until("all have gathered", lambda: gathered(writer._ends) == GOOD + 1)
        assert under_way.result(60) == "completed"
        assert [fate(answer) for answer in answers] == ["completed"] * GOOD
        with pytest.raises(db.UNSTORABLE):
            culprit.result(60)

    async def look(engine: Engine) -> None:
        assert await engine.count("status = 'completed' AND result = '\"good\"'") == GOOD
        assert await engine.status(bad.task_id) == "running"

    ask(database_url, look)


def test_an_end_does_not_wait_for_its_workflow(database_url: str, writer: Writer) -> None:
    async def start_one(engine: Engine) -> Claimed:
        return await (await a_workflow(engine, {"only": []})).start("only")

    attempt = ask(database_url, start_one)
    with threads(1) as pool, held_up(database_url, "SELECT 1 FROM workflows, task_groups FOR UPDATE"):
        assert fate(pool.submit(end, writer, ending_of_success(attempt, "paid"))) == "completed"


def fate(answer: "Future[str | None]") -> str:
    error = answer.exception(60)
    return type(error).__name__ if error else str(answer.result())


def writer_waits(database_url: str) -> bool:
    """Asked by the shortest way: its patience with the lock is not to end while a test looks."""
    waiting = f"SELECT 1 FROM pg_stat_activity WHERE {WRITER} AND wait_event_type = 'Lock'"
    return len(databases.ask(database_url, waiting)) == 1


def test_an_end_is_offered_until_it_is_accepted_although_the_connection_is_lost(
    database_url: str, writer: Writer
) -> None:
    attempt = ask(database_url, lambda engine: engine.running())
    with threads(1) as pool:
        with held_up(database_url, A_TASK, attempt.task_id):
            answer = pool.submit(end, writer, ending_of_success(attempt, "kept"))
            wait_until("the writer waits", lambda: writer_waits(database_url))
            ask(
                database_url,
                lambda engine: engine.sql(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE {WRITER}"),
            )
        assert answer.result(60) == "completed"

    async def look(engine: Engine) -> None:
        assert (await engine.row(attempt.task_id))["result"] == "kept"
        assert await engine.story(attempt.task_id) == ["submit", "claim", "complete"]

    ask(database_url, look)


def test_reports_are_written_a_few_times_a_second_and_joined(database_url: str, writer: Writer) -> None:
    attempt = ask(database_url, lambda engine: engine.running())
    context = Context(attempt, "worker-1", on_report=writer.report)
    began = time.monotonic()
    for number in range(100):
        context.output(f"{number} ")
        context.progress(f"Step {number}")
    reports = 1 + int((time.monotonic() - began) / REPORT_EVERY_SECONDS)  # one, unless the machine was busy

    async def events(engine: Engine) -> list[TaskEventRow]:
        return (await engine.history(attempt.task_id))[2:]

    def all_of_it() -> list[TaskEventRow]:
        written = ask(database_url, events)
        return written if "Step 99" in str([event["data"] for event in written]) else []

    written = wait_until("all of it is written", all_of_it)
    texts = [event["data"]["text"] for event in written if event["type"] == "output"]
    steps = [event["data"]["progress"]["message"] for event in written if event["type"] == "progress"]
    assert written[0]["type"] == "output"
    assert "".join(texts).split() == [str(number) for number in range(100)]
    assert steps[-1] == "Step 99"
    assert len(texts) <= reports
    assert len(steps) <= reports


def test_a_flood_is_written_as_rows_that_are_short_enough_in_order(database_url: str, writer: Writer) -> None:
    attempt = ask(database_url, lambda engine: engine.running())
    context = Context(attempt, "worker-1", on_report=writer.report, largest_output_bytes=3 * 65_536)
    words = [f"{number:09d}\n" for number in range(15_000)]
    context.output("".join(words))
    context.output("x" * 65_536)

    async def output(engine: Engine) -> list[dict[str, Any]]:
        return [event["data"] for event in await engine.history(attempt.task_id) if event["type"] == "output"]

    def all_of_it() -> list[dict[str, Any]]:
        written = ask(database_url, output)
        return written if "output_cut_off" in str(written) else []

    *texts, marker = wait_until("it is written, up to the mark", all_of_it)
    assert "".join(each["text"] for each in texts) == "".join(words)
    assert [len(each["text"].encode()) for each in texts] == [65_530, 65_530, 18_940]
    assert marker == {"data": {"output_cut_off": True, "limit_bytes": 3 * 65_536}}


@pytest.mark.parametrize("value", UNSTORABLE.values(), ids=UNSTORABLE)
def test_a_report_that_cannot_be_stored_keeps_nobody_else_s_words_or_end_from_being_written(
    database_url: str, writer: Writer, value: Any
) -> None:
    async def start_them(engine: Engine) -> list[Claimed]:
        return [await engine.start(task_id) for task_id in await engine.submit_many(2)]

    bad, good = (Context(each, "worker-1", on_report=writer.report) for each in ask(database_url, start_them))
    bad.save({"page": value})
    good.output("fine")

    async def heard(engine: Engine) -> bool:
        return "output" in await engine.story(good.task_id)

    wait_until("the good one's words are written", lambda: ask(database_url, heard))
    with threads(1) as pool:
        answer = pool.submit(end, writer, ending_of_success(bad.task, "it goes on"))
        assert answer.result(60) == "completed"
