"""Request rates: in no window are more places taken than the rate allows, over all workers; waiting for one is free."""

from collections.abc import Iterator

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.installation import Windlass
from tests.support.providers.counting_provider import CountingProvider, counting_provider
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.services.actors.worker.rate_backend import SLICES

LIMIT, PER_SECONDS = 5, 4
SLICE_SECONDS = PER_SECONDS / SLICES
PROVIDERS = f"""
[providers.rated]
actor = "probe"
rate = {{limit = {LIMIT}, per_seconds = {PER_SECONDS}}}

[providers.slow]
actor = "probe"
rate = {{limit = 1, per_seconds = 3600}}
"""


@pytest.fixture(scope="module")
def provider() -> Iterator[CountingProvider]:
    with counting_provider() as provider:
        yield provider


@pytest.fixture(scope="module")
def windlass(
    servers: Servers,
    migrated_template: str,
    management: httpx.Client,
    tmp_path_factory: pytest.TempPathFactory,
    provider: CountingProvider,
) -> Iterator[Windlass]:
    """One for both tests: each has a provider and workers of its own."""
    directory = tmp_path_factory.mktemp("rates")
    with a_windlass_apart(
        servers, migrated_template, management, directory, config=PROVIDERS, COUNTING_PROVIDER=provider.address
    ) as windlass:
        for service in ("api", "dispatcher", "janitor"):
            windlass.start(service)
        for _ in range(2):
            windlass.start("tests.support.providers.counting_worker", WINDLASS_QUEUES="probe.rated")
        windlass.start("actors", WINDLASS_QUEUES="probe.slow")
        windlass.wait_until_healthy()
        wait_until("three workers", lambda: len(windlass.client.workers()) == 3)
        yield windlass


@pytest.fixture
def database_url(windlass: Windlass) -> str:
    return windlass.environment["WINDLASS_DATABASE_URL"]


# Each place with its moment, on the clock that counts it and under its limiter's lock.
WRITE_PLACES_DOWN = """
    CREATE TABLE places (at timestamptz);
    CREATE FUNCTION write_place_down() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN INSERT INTO places VALUES (clock_timestamp()); RETURN NULL; END $$;
    CREATE TRIGGER write_places_down AFTER INSERT OR UPDATE ON rate_counters
        FOR EACH ROW EXECUTE FUNCTION write_place_down()
"""
PLACES = "SELECT extract(epoch FROM at)::float FROM places ORDER BY at"


def test_in_no_window_do_more_calls_come_than_the_rate_allows(
    windlass: Windlass, provider: CountingProvider, database_url: str
) -> None:
    """The promise is about places; a call that is made more than a slice after its own may meet others' calls there
    (decision 0014), which a busy machine does to it: what it was late by is taken off the window."""
    client = windlass.client
    execute(database_url, WRITE_PLACES_DOWN)
    ids = client.submit_many([{"provider": "rated"}] * (2 * LIMIT))
    tasks = [client.finished(task_id) for task_id in ids]
    assert {(task["status"], task["attempt"], task["retry_count"]) for task in tasks} == {("completed", 1, 0)}
    assert len({task["worker_id"] for task in tasks}) == 2, "both workers took part"
    came = [call.came_at for call in provider.calls]
    taken = [row[0] for row in ask(database_url, PLACES)]
    assert len(came) == len(taken) == len(ids)
    assert most_in(PER_SECONDS, taken) == LIMIT
    delays = [arrival - place for arrival, place in zip(came, taken, strict=True)]  # and the two clocks' difference
    unequally_late = max(delays) - min(delays)
    assert most_in(PER_SECONDS - max(0, unequally_late - SLICE_SECONDS), came) <= LIMIT
    assert taken[-1] - taken[0] < 5 * PER_SECONDS, "and it is used"


def most_in(seconds: float, times: list[float]) -> int:
    return max(sum(begin <= at < begin + seconds for at in times) for begin in times)


def test_who_waits_for_the_rate_can_be_cancelled_and_loses_neither_retry_nor_time(
    windlass: Windlass, database_url: str
) -> None:
    client = windlass.client
    assert client.submit(provider="slow", wait=40)["status"] == "completed"
    waiting, cancelled = client.submit_many([{"provider": "slow", "timeout_seconds": 1}] * 2)
    both = (waiting, cancelled)
    wait_until("they say that they wait", lambda: all("Waiting for" in _message(client.get(each)) for each in both))

    client.cancel(cancelled)
    task = client.wait_until(cancelled, "cancelled")
    assert task["retry_count"] == 0

    wait_until(
        "it has waited longer than its timeout",
        lambda: client.get(waiting)["status"] == "running" and _seconds_running(database_url, waiting) > 1.5,
    )
    # An operator's change is in force for those who wait.
    execute(database_url, """UPDATE providers SET rate_override = '{"limit": 2, "per_seconds": 3600}'""")
    task = client.finished(waiting)
    assert (task["status"], task["attempt"], task["retry_count"]) == ("completed", 1, 0)


def _message(task: dict[str, object]) -> str:
    progress = task["progress"]
    assert isinstance(progress, dict)
    return str(progress["message"])


def _seconds_running(database_url: str, task_id: str) -> float:
    query = "SELECT extract(epoch FROM clock_timestamp() - started_at)::float FROM tasks WHERE task_id = $1"
    return float(ask(database_url, query, task_id)[0][0])
