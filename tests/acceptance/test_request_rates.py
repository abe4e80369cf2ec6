"""Rates: in no window do more tasks start than the rate allows, over all workers, and who waits for it is in nobody's
way."""

from collections.abc import Iterator
from datetime import datetime

import httpx
import pytest

from tests.acceptance.conftest import a_windlass_apart
from tests.support.installation import Windlass
from tests.support.providers.counting_provider import CountingProvider, counting_provider
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until

LIMIT, PER_SECONDS = 5, 3
SLICE_SECONDS = PER_SECONDS / 20
RATE_LIMITED = "rate-limited-until"
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
        for service in ("api", "dispatcher", "janitor", "orchestrator"):
            windlass.start(service)
        for _ in range(2):
            windlass.start("tests.support.providers.counting_worker", WINDLASS_QUEUES="probe.rated")
        windlass.start("actors", WINDLASS_QUEUES="probe.slow,probe.probe", WINDLASS_ACTOR_THREADS="2")
        windlass.wait_until_healthy()
        wait_until("three workers", lambda: len(windlass.client.workers()) == 3)
        yield windlass


STARTS = """
    SELECT task_id::text, attempt, extract(epoch FROM at)::float AS at, data ->> 'worker_id' AS worker_id
    FROM task_events WHERE type = 'claim' AND task_id = ANY ($1) ORDER BY at
"""


def test_in_no_window_do_more_calls_come_than_the_rate_allows_though_a_worker_is_killed(
    windlass: Windlass, provider: CountingProvider
) -> None:
    """The promise is about starts; a call that is made more than a slice after its own may meet others' calls there
    (decision 0039), which a busy machine does to it: what it was late by is taken off the window."""
    client = windlass.client
    ids = client.submit_many(
        [{"provider": "rated", "payload": {"seconds": seconds}} for seconds in [8] * LIMIT + [0.1] * LIMIT]
    )
    wait_until("all that may start are under way", lambda: provider.open_calls == LIMIT)
    killed = client.get(ids[0])["worker_id"]
    windlass.kill(next(each["pid"] for each in client.workers() if each["worker_id"] == killed))
    tasks = [client.finished(task_id) for task_id in ids]
    assert {task["status"] for task in tasks} == {"completed"}
    assert client.story(ids[0]).count("claim") == 2, "the one that was killed starts again, and takes another place"

    starts = ask(windlass.environment["WINDLASS_DATABASE_URL"], STARTS, ids)
    assert len({start["worker_id"] for start in starts}) >= 2, "several workers took part"
    came = {(call.task_id, call.attempt): call.came_at for call in provider.calls}
    started = {(start["task_id"], start["attempt"]): start["at"] for start in starts}
    by = {(start["task_id"], start["attempt"]): start["worker_id"] for start in starts}
    assert came.keys() <= started.keys()
    assert {by[each] for each in started.keys() - came.keys()} <= {killed}, "only the dead make no call that was due"
    assert most_in(PER_SECONDS, list(started.values())) == LIMIT
    delays = [came[each] - started[each] for each in came]  # and the two clocks' difference
    unequally_late = max(delays) - min(delays)
    assert most_in(PER_SECONDS - max(0, unequally_late - SLICE_SECONDS), list(came.values())) <= LIMIT
    assert max(started.values()) - min(started.values()) < 10 * PER_SECONDS, "and it is used"


def most_in(seconds: float, times: list[float]) -> int:
    return max(sum(begin <= at < begin + seconds for at in times) for begin in times)


def test_who_waits_for_the_rate_is_queued_and_leaves_the_worker_to_others(windlass: Windlass) -> None:
    client = windlass.client
    first = client.submit(provider="slow", wait=40)
    assert first["status"] == "completed"
    ids = client.submit_many([{"provider": "slow", "timeout_seconds": 1}] * 8)
    assert client.submit(provider="probe", priority=0, wait=40)["status"] == "completed", "its worker has two threads"
    assert {client.get(each)["status"] for each in ids} == {"queued"}
    answer = wait_until("it is said", lambda: why if (why := client.why(ids[0]))["reason"] == RATE_LIMITED else None)
    waits_for = datetime.fromisoformat(answer["details"]["until"]) - datetime.fromisoformat(first["started_at"])
    assert 3600 < waits_for.total_seconds() < 3600 * 1.1

    client.cancel(ids[0])
    client.wait_until(ids[0], "cancelled")
    client.change_provider("slow", rate={"limit": 3, "per_seconds": 3600})
    for each in ids[1:3]:  # in their order
        task = client.finished(each)
        assert (task["status"], task["attempt"], task["retry_count"]) == ("completed", 1, 0)
    assert {client.get(each)["status"] for each in ids[3:]} == {"queued"}
