"""Request rates: no window sees more calls than the rate allows, over all workers, and waiting for a place is free."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.installation import Windlass
from tests.support.providers.counting_provider import CountingProvider, counting_provider
from tests.support.servers.databases import ask, execute
from tests.support.waiting import wait_until

LIMIT, PER_SECONDS = 5, 2
PROVIDERS = f"""
[providers.rated]
actor = "probe"
rate = {{limit = {LIMIT}, per_seconds = {PER_SECONDS}}}

[providers.slow]
actor = "probe"
rate = {{limit = 1, per_seconds = 3600}}
"""


@pytest.fixture
def provider() -> Iterator[CountingProvider]:
    with counting_provider() as provider:
        yield provider


@pytest.fixture
def windlass(database_url: str, amqp_url: str, tmp_path: Path, provider: CountingProvider) -> Iterator[Windlass]:
    config = tmp_path / "windlass.toml"
    config.write_text(PROVIDERS)
    settings = {"WINDLASS_CONFIG": str(config), "COUNTING_PROVIDER": provider.address}
    windlass = Windlass(database_url, amqp_url, tmp_path, **settings)
    try:
        for service in ("api", "dispatcher", "janitor"):
            windlass.start(service)
        for _ in range(2):
            windlass.start("tests.support.providers.counting_worker", WINDLASS_QUEUES="probe.rated")
        windlass.start("actors", WINDLASS_QUEUES="probe.slow")
        windlass.wait_until_healthy()
        wait_until("three workers", lambda: len(windlass.client.workers()) == 3)
        yield windlass
    finally:
        windlass.stop()
        print(windlass.log())


def test_in_no_window_do_more_calls_come_than_the_rate_allows(windlass: Windlass, provider: CountingProvider) -> None:
    client = windlass.client
    ids = client.submit_many([{"provider": "rated"}] * (2 * LIMIT + 1))
    tasks = [client.finished(task_id) for task_id in ids]
    assert {(task["status"], task["attempt"], task["retry_count"]) for task in tasks} == {("completed", 1, 0)}
    assert len({task["worker_id"] for task in tasks}) == 2, "both workers took part"
    times = [call.came_at for call in provider.calls]
    assert len(times) == len(ids)
    for begin in times:
        assert sum(begin <= at < begin + PER_SECONDS for at in times) <= LIMIT
    assert times[-1] - times[0] < 10 * PER_SECONDS, "and it is used"


def test_who_waits_for_the_rate_can_be_cancelled_and_loses_neither_retry_nor_time(
    windlass: Windlass, database_url: str
) -> None:
    client = windlass.client
    assert client.submit(provider="slow", wait=20)["status"] == "completed"
    waiting, cancelled = client.submit_many([{"provider": "slow", "timeout_seconds": 1}] * 2)
    both = (waiting, cancelled)
    wait_until("they say that they wait", lambda: all("Waiting for" in _message(client.get(each)) for each in both))

    client.cancel(cancelled)
    task = client.wait_until(cancelled, "cancelled", seconds=10)
    assert task["retry_count"] == 0

    wait_until(
        "it has waited longer than its timeout",
        lambda: client.get(waiting)["status"] == "running" and _seconds_running(database_url, waiting) > 1.5,
    )
    # An operator's change is in force for those who wait.
    execute(database_url, """UPDATE providers SET rate_override = '{"limit": 2, "per_seconds": 3600}'""")
    task = client.finished(waiting, seconds=10)
    assert (task["status"], task["attempt"], task["retry_count"]) == ("completed", 1, 0)


def _message(task: dict[str, object]) -> str:
    progress = task["progress"]
    assert isinstance(progress, dict)
    return str(progress["message"])


def _seconds_running(database_url: str, task_id: str) -> float:
    query = "SELECT extract(epoch FROM clock_timestamp() - started_at)::float FROM tasks WHERE task_id = $1"
    return float(ask(database_url, query, task_id)[0][0])
