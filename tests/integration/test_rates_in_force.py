"""The rate in force for a provider, and taking a place in it from a worker's threads."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from uuid import uuid4

import pytest

from tests.support.engine.store import Engine, empty_database, on_the_engine
from tests.support.engine.store_from_threads import ask, held_up
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.services.actors.worker.rates import Rates
from windlass.services.actors.worker.writing.writer import Writer
from windlass.shared.settings import Settings
from windlass.shared.store.flow_control import providers, rates
from windlass.shared.store.tasks import Claim, Claimed

A_RATE = {"limit": 2, "per_seconds": 60}
A_LIMITER = "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))"
WRITER = "application_name LIKE 'windlass-actors-writer %'"


def configured(rate: dict[str, int] | None) -> Settings:
    return Settings(database_url="unused", providers={"rated": {"actor": "probe", "rate": rate}})


@on_the_engine
async def test_the_configured_rate_is_written_and_follows_the_file(engine: Engine) -> None:
    for rate in (A_RATE, {"limit": 9, "per_seconds": 1}):
        await providers.configure(engine.pool, configured(rate))
        found = await rates.in_force(engine.pool, "rated")
        assert {"limit": found.limit, "per_seconds": found.per_seconds} == rate
    await providers.configure(engine.pool, configured(None))
    assert (await rates.in_force(engine.pool, "rated")).limit is None


@on_the_engine
async def test_what_an_operator_sets_goes_before_what_is_configured_and_outlasts_a_restart(engine: Engine) -> None:
    await providers.configure(engine.pool, configured(A_RATE))
    await engine.sql("UPDATE providers SET rate_override = $1 WHERE name = 'rated'", {"limit": 7, "per_seconds": 3})
    await providers.configure(engine.pool, configured(A_RATE))
    found = await rates.in_force(engine.pool, "rated")
    assert (found.limit, found.per_seconds) == (7, 3)
    await engine.sql("UPDATE providers SET rate_override = NULL WHERE name = 'rated'")
    assert (await rates.in_force(engine.pool, "rated")).limit == 2


@on_the_engine
async def test_a_provider_that_nobody_knows_has_no_rate(engine: Engine) -> None:
    assert (await rates.in_force(engine.pool, "nobody")).limit is None


# From a worker's threads


@pytest.fixture
def engine_url(servers: Servers, migrated_template: str) -> str:
    return empty_database(servers.database_url, migrated_template)


@pytest.fixture
def writer(engine_url: str) -> Iterator[Writer]:
    settings = Settings(database_url=engine_url, stop_grace_seconds=0.4)
    writer = Writer(settings, "worker-1", on_claim=lambda _tokens, _lease_end: None)
    writer.start()
    yield writer
    writer.close(timeout=10)
    writer._loop.close()


def set_rate(database_url: str, rate: dict[str, int] | None) -> None:
    ask(database_url, lambda engine: engine.sql("UPDATE providers SET rate_override = $1 WHERE name = 'probe'", rate))


class Attempt:
    """Takes a place as a context does; `stop` ends the waiting."""

    def __init__(self, rates: Rates) -> None:
        self._rates = rates
        self._told = threading.Event()
        self.said: list[str] = []

    def take(self) -> str:
        try:
            self._rates.take("probe", sleep=self._sleep, on_wait=self.said.append)
        except InterruptedError:
            return "stopped"
        return "taken"

    def stop(self) -> None:
        self._told.set()

    def _sleep(self, seconds: float) -> None:
        if self._told.wait(seconds):
            raise InterruptedError


def test_so_many_get_a_place_and_the_others_wait_until_they_are_stopped(engine_url: str, writer: Writer) -> None:
    ask(engine_url, _nothing)
    set_rate(engine_url, A_RATE)
    rates = Rates(writer)
    attempts = [Attempt(rates) for _ in range(8)]
    with ThreadPoolExecutor(8) as pool:
        taking = [pool.submit(attempt.take) for attempt in attempts]
        wait_until("six wait and say so", lambda: sum(bool(attempt.said) for attempt in attempts) == 6)
        assert sum(each.done() for each in taking) == 2
        assert {"Waiting for the provider's rate (2 in 60 s)"} == {said for each in attempts for said in each.said}
        for attempt in attempts:
            attempt.stop()
        assert sorted(each.result(5) for each in taking) == ["stopped"] * 6 + ["taken"] * 2


@pytest.mark.parametrize("change", [{"limit": 3, "per_seconds": 60}, None], ids=["raised", "removed"])
def test_a_change_counts_for_those_who_wait(
    engine_url: str, writer: Writer, change: dict[str, int] | None
) -> None:  # fmt: skip
    ask(engine_url, _nothing)
    set_rate(engine_url, A_RATE)
    rates = Rates(writer)
    assert [Attempt(rates).take() for _ in range(2)] == ["taken", "taken"]
    waiting = Attempt(rates)
    with ThreadPoolExecutor(1) as pool:
        taking = pool.submit(waiting.take)
        wait_until("it waits", lambda: waiting.said)
        set_rate(engine_url, change)
        assert taking.result(5) == "taken"


def test_a_call_that_hangs_holds_up_neither_claims_nor_a_stop_and_is_made_again(
    engine_url: str, writer: Writer, caplog: pytest.LogCaptureFixture
) -> None:
    task_id = ask(engine_url, lambda engine: engine.submit())
    set_rate(engine_url, A_RATE)
    rates = Rates(writer)
    patient, hasty = Attempt(rates), Attempt(rates)
    with ThreadPoolExecutor(2) as pool:
        with held_up(engine_url, A_LIMITER, "rate:probe:60"):
            taking = pool.submit(patient.take)
            wait_until("the call hangs", lambda: ask(engine_url, _writer_waits))
            assert isinstance(writer.claim(Claim(task_id, uuid4())), Claimed)
            stopping = pool.submit(hasty.take)
            hasty.stop()
            assert stopping.result(5) == "stopped"
            wait_until("several were given up", lambda: caplog.text.count("asking again") >= 3)
        assert taking.result(10) == "taken"
    assert ask(engine_url, _places_taken) == 2, "the one that hung, and the one that was answered"


async def _nothing(_engine: Engine) -> None:
    """An engine has the provider `probe` as soon as it is there."""


async def _writer_waits(engine: Engine) -> bool:
    query = f"SELECT count(*) FROM pg_stat_activity WHERE {WRITER} AND wait_event_type = 'Lock'"
    return bool(await engine.pool.fetchval(query) == 1)


async def _places_taken(engine: Engine) -> int:
    return int(await engine.pool.fetchval("SELECT sum(value) FROM rate_counters"))
