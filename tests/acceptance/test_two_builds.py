"""Two builds on one database: an upgrade under load and the way back, on functions that differ."""

import asyncio
import signal
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.support.installation import SERVICES, Client, Process, Windlass, answers
from tests.support.older_build import OlderBuild
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.shared.migrations.runner import migrate
from windlass.shared.process.procfs import stat_of
from windlass.shared.store.functions import schema

ROUNDS_IN_EACH_STAGE = 4
Processes = dict[str, Process]


@pytest.fixture
def windlass(empty_database_url: str, amqp_url: str, tmp_path: Path) -> Iterator[Windlass]:
    installation = Windlass(empty_database_url, amqp_url, tmp_path)
    yield installation
    installation.stop()
    print(installation.log())


class Load(threading.Thread):
    """Submits to whichever api it is told, and remembers what has to become of each task."""

    def __init__(self, client: Client) -> None:
        super().__init__(daemon=True)
        self.client = client
        self.expected: dict[str, str] = {}
        self.rounds = 0
        self.failure: BaseException | None = None
        self._over = threading.Event()

    def run(self) -> None:
        try:
            while not self._over.wait(0.3):
                self._submit(self.client)
                self.rounds += 1
        except BaseException as error:  # noqa: BLE001 - told by whoever waits
            self.failure = error

    def _submit(self, client: Client) -> None:
        plain = client.submit_many([{"payload": {"seconds": 0.05}}] * 4)
        retried = client.submit_many([{"payload": {"outcome": "transient", "fail_times": 1}, "max_retries": 5}] * 2)
        child = client.submit(depends_on=[plain[0], retried[0]])["task_id"]
        cancelled = client.submit(delay_seconds=3600)["task_id"]
        orphan = client.submit(depends_on=[cancelled])["task_id"]
        client.cancel(cancelled).raise_for_status()
        self.expected |= dict.fromkeys([*plain, *retried, child], "completed")
        self.expected |= {cancelled: "cancelled", orphan: "dead"}

    def go_on(self, client: Client | None = None) -> None:
        """Waits until it has submitted some more, to another api if there is one."""
        self.client = client or self.client
        before = self.rounds
        wait_until("more load", lambda: self.failure or self.rounds >= before + ROUNDS_IN_EACH_STAGE, seconds=120)
        assert self.failure is None, self.failure

    def end(self) -> None:
        self._over.set()
        self.join()
        assert self.failure is None, self.failure


def start(windlass: Windlass, services: Sequence[str] = SERVICES, **settings: str) -> tuple[Processes, Client]:
    """Starts all services of a build and leaves those that run alone."""
    port = free_port()
    processes = {service: windlass.start(service, WINDLASS_PORT=str(port), **settings) for service in services}
    client = Client(f"http://127.0.0.1:{port}")
    windlass.clients.append(client)
    wait_until("an api", lambda: answers(client), seconds=120)
    return processes, client


def stop(processes: Processes) -> None:
    for process in processes.values():
        process.send_signal(signal.SIGTERM)
    assert {service: process.wait(60) for service, process in processes.items()} == dict.fromkeys(processes, 0)


def workers_of(database_url: str, processes: Processes) -> set[str]:
    """The workers whose parent is this build's guardian."""
    guardian = processes["actors"].pid
    rows = ask(database_url, "SELECT worker_id, pid FROM workers WHERE state = 'active'")
    return {row["worker_id"] for row in rows if parent_of(row["pid"]) == guardian}


def parent_of(pid: int) -> int:
    stat = stat_of(pid)
    return stat.parent if stat is not None else 0


def test_an_upgrade_under_load_and_the_way_back(
    windlass: Windlass, empty_database_url: str, older_build: OlderBuild
) -> None:
    database_url = empty_database_url
    older_build.migrate(database_url)
    older, through_older = start(windlass, older_build.services, **older_build.environment)
    builds = {"older": wait_until("a worker", lambda: workers_of(database_url, older))}
    load = Load(through_older)
    load.start()
    load.go_on()

    asyncio.run(migrate(database_url))
    newer, through_newer = start(windlass)
    builds["newer"] = wait_until("a worker", lambda: workers_of(database_url, newer))
    load.go_on()  # submitted to the older, run by both
    assert sets_in_use(database_url) == {older_build.schema, schema()}
    load.go_on(through_newer)
    stop(older)
    load.go_on()

    older_build.migrate(database_url)
    again, through_older_again = start(windlass, older_build.services, **older_build.environment)
    builds["older"] |= wait_until("a worker", lambda: workers_of(database_url, again))
    load.go_on(through_older_again)
    stop(newer)
    load.go_on()
    load.end()

    still = "SELECT 1 FROM tasks WHERE completed_at IS NULL"
    wait_until("all have ended", lambda: not ask(database_url, still), seconds=120)
    became = {str(row["task_id"]): row["status"] for row in ask(database_url, "SELECT task_id, status FROM tasks")}
    assert became == load.expected
    assert len(became) > 200
    events = ask(database_url, "SELECT task_id, type, data ->> 'worker_id' AS worker FROM task_events ORDER BY seq")
    completed = Counter(row["task_id"] for row in events if row["type"] == "complete")
    assert set(completed.values()) == {1}
    assert len(completed) == sum(status == "completed" for status in load.expected.values())
    begun_by = claims(events, builds)
    assert {("older",), ("newer",)} <= {tuple(sorted(names)) for names in begun_by.values()}
    assert any(len(names) == 2 for names in begun_by.values()), "what one has tried the other has ended"
    wait_until("nothing unaccounted", lambda: "windlass_unaccounted_tasks 0.0" in metrics(through_older_again))
    complaints = [line for line in windlass.log().splitlines() if "Traceback" in line or " ERROR " in line]
    assert complaints == []


def sets_in_use(database_url: str) -> set[str]:
    query = """
        SELECT DISTINCT split_part(application_name, ' ', 2) FROM pg_stat_activity
        WHERE datname = current_database() AND application_name LIKE 'windlass-%'
    """
    return {row[0] for row in ask(database_url, query)}


def claims(events: list[Any], builds: dict[str, set[str]]) -> dict[Any, set[str]]:
    """Which builds have begun an attempt at each task."""
    build_of = {worker: build for build, workers in builds.items() for worker in workers}
    begun: dict[Any, set[str]] = {}
    for row in events:
        if row["type"] == "claim" and row["worker"] in build_of:
            begun.setdefault(row["task_id"], set()).add(build_of[row["worker"]])
    return begun


def metrics(client: Client) -> str:
    return client.http.get("/metrics").text
