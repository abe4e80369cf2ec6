"""An attempt that makes several calls takes further places in its provider's rate, from a worker's threads."""

import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from uuid import UUID, uuid4

import pytest

from tests.support.engine import rated
from tests.support.engine.store import Engine, empty_database
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.servers import databases
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.services.actors.worker.context.context import Context, Stopped
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared.settings import Settings
from windlass.shared.store.tasks import Claim, Claimed

THE_PROVIDER = "SELECT 1 FROM providers WHERE name = 'probe' FOR UPDATE"
WRITER = "application_name LIKE 'windlass-actors-writer %' AND wait_event_type = 'Lock'"


@pytest.fixture
def engine_url(servers: Servers, migrated_template: str) -> str:
    url = empty_database(servers.database_url, migrated_template)
    set_rate(url, 2)
    return url


@contextmanager
def a_writer(engine_url: str, stop_grace_seconds: float) -> Iterator[Writer]:
    settings = Settings(database_url=engine_url, stop_grace_seconds=stop_grace_seconds, lease_seconds=180)
    writer = Writer(settings, "worker-1", on_claim=lambda _tokens, _lease_end: None)
    writer.start()
    try:
        yield writer
    finally:
        writer.close(timeout=60)
        writer._loop.close()


@pytest.fixture
def writer(engine_url: str) -> Iterator[Writer]:
    """A patient one: a call that is given up, because the machine is busy, may have taken a place all the same."""
    with a_writer(engine_url, stop_grace_seconds=60) as writer:
        yield writer


@pytest.fixture
def hasty_writer(engine_url: str) -> Iterator[Writer]:
    """It gives a call up that hangs, before Postgres does."""
    with a_writer(engine_url, stop_grace_seconds=4) as writer:
        yield writer


def set_rate(database_url: str, limit: int | None) -> None:
    ask(database_url, lambda engine: rated.set_rate(engine, limit))


def places_taken(database_url: str) -> int:
    return ask(database_url, rated.places_taken)


class Attempt:
    """One that has not come with a place of its own, unless it is said: it goes on waiting for an open job."""

    def __init__(self, writer: Writer, *, job_open: bool = True, timeout_seconds: float = 300) -> None:
        task = Claimed(
            uuid4(), uuid4(), "probe", "probe", {}, None, attempt=1, retry_count=0, max_retries=3, interrupt_count=0,
            stall_count=0, rate_limited_count=0, timeout_seconds=timeout_seconds, job_open=job_open,
        )  # fmt: skip
        self.said: list[str] = []
        self.context = Context(
            task, "worker-1", on_report=self._listen, begin_asking=writer.begin_call, settings=writer._settings
        )
        self.context.begin()

    def take(self) -> str:
        try:
            self.context.rate()
        except Stopped:
            return "stopped"
        return "taken"

    def _listen(self, context: Context) -> None:
        report = context.take_report()
        assert report is not None
        assert report.progress is not None
        self.said.append(report.progress["message"])


def test_the_first_place_is_the_claim_s_and_who_resumes_has_none(engine_url: str, writer: Writer) -> None:
    starting, resuming = Attempt(writer, job_open=False), Attempt(writer)
    assert starting.take() == "taken"
    assert places_taken(engine_url) == 0
    assert [starting.take(), resuming.take()] == ["taken", "taken"]
    assert places_taken(engine_url) == 2
    assert starting.said == resuming.said == [], "nobody had to wait"


def test_so_many_get_a_place_and_the_others_wait_until_they_are_stopped(engine_url: str, writer: Writer) -> None:
    attempts = [Attempt(writer) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        taking = [pool.submit(attempt.take) for attempt in attempts]
        wait_until("six wait and say so", lambda: sum(bool(attempt.said) for attempt in attempts) == 6)
        wait_until("two have a place", lambda: sum(each.done() for each in taking) == 2)
        assert {said for each in attempts for said in each.said} == {"Waiting for the provider's rate (2 in 60 s)"}
        for attempt in attempts:
            attempt.context.stop()
        assert sorted(each.result(60) for each in taking) == ["stopped"] * 6 + ["taken"] * 2
    assert places_taken(engine_url) == 2


@pytest.mark.parametrize("limit", [3, None], ids=["raised", "removed"])
def test_a_change_counts_for_those_who_wait_and_waiting_uses_up_no_time(
    engine_url: str, writer: Writer, limit: int | None
) -> None:
    assert [Attempt(writer).take() for _ in range(2)] == ["taken", "taken"]
    waiting = Attempt(writer, timeout_seconds=0.3)
    with ThreadPoolExecutor(1) as pool:
        began, taking = time.monotonic(), pool.submit(waiting.take)
        wait_until("it has waited longer than its timeout", lambda: waiting.said and time.monotonic() > began + 0.5)
        set_rate(engine_url, limit)
        assert taking.result(60) == "taken"
    assert waiting.said[-1] == "Processing"


def test_a_call_that_hangs_holds_up_neither_claims_nor_a_stop_and_is_made_again(
    engine_url: str, hasty_writer: Writer
) -> None:
    """What hung may have taken a place all the same: one is wasted, and none is used twice."""
    task_id = ask(engine_url, _of_another_provider)
    patient, hasty = Attempt(hasty_writer), Attempt(hasty_writer)
    with ThreadPoolExecutor(2) as pool:
        with held_up(engine_url, THE_PROVIDER):
            taking: Future[str] = pool.submit(patient.take)
            wait_until("the call hangs", lambda: _writer_waits(engine_url))
            answer, _ = hasty_writer.claim_alone(Claim(task_id, uuid4()))
            assert isinstance(answer, Claimed)
            stopping = pool.submit(hasty.take)
            hasty.context.stop()
            assert stopping.result(60) == "stopped"
        assert taking.result(60) == "taken"
    assert 1 <= places_taken(engine_url) <= 2


async def _of_another_provider(engine: Engine) -> UUID:
    await engine.provide("other", limit=None)
    return await engine.submit(provider="other")


def _writer_waits(database_url: str) -> bool:
    """Asked past the engine, which would wait for the provider, too."""
    return len(databases.ask(database_url, f"SELECT 1 FROM pg_stat_activity WHERE {WRITER}")) == 1
