"""An upgrade from the edition before this one: stop, migrate, start. It does not roll, and nothing is lost."""

import asyncio
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.support.installation import SERVICES, Client, Process, Windlass, answers
from tests.support.older_build import OlderBuild
from tests.support.servers.databases import ask, execute
from tests.support.waiting import wait_until
from tests.support.webhook_receiver import Receiver, receiving
from windlass.services.laptop.ports import free_port
from windlass.shared.migrations.fence import ALIVE_SECONDS, OlderWorkersAlive
from windlass.shared.migrations.runner import migrate

CONFIG = """
[network]
allow_private = ["127.0.0.1"]

[providers.one-by-one]
actor = "probe"
limit = 1

[actors.webhook.retries]
other = [1]
"""
ITEMS = 5
ELEMENTS = 5
EVERY_SECONDS = 10
Processes = dict[str, Process]


@pytest.fixture
def windlass(empty_database_url: str, amqp_url: str, tmp_path: Path) -> Iterator[Windlass]:
    config = tmp_path / "windlass.toml"
    config.write_text(CONFIG)
    installation = Windlass(empty_database_url, amqp_url, tmp_path, WINDLASS_CONFIG=str(config))
    yield installation
    installation.stop()
    print(installation.log())


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with receiving() as receiver:
        yield receiver


def start(windlass: Windlass, services: tuple[str, ...] = SERVICES, **settings: str) -> tuple[Processes, Client]:
    """Starts all services of an edition, and leaves other running processes alone."""
    port = free_port()
    processes = {service: windlass.start(service, WINDLASS_PORT=str(port), **settings) for service in services}
    client = Client(f"http://127.0.0.1:{port}")
    windlass.clients.append(client)
    wait_until("an api", lambda: answers(client), seconds=120)
    wait_until("a worker", client.workers, seconds=120)
    return processes, client


def stop(processes: Processes) -> None:
    for process in processes.values():
        process.send_signal(signal.SIGTERM)
    assert {service: process.wait(60) for service, process in processes.items()} == dict.fromkeys(processes, 0)


def post(client: Client, path: str, body: Any = None) -> Any:
    return client.http.post(f"/api/v1{path}", json=body).raise_for_status().json()


def test_nothing_that_was_under_way_is_lost(
    windlass: Windlass, empty_database_url: str, older_build: OlderBuild, receiver: Receiver
) -> None:
    url = empty_database_url
    older_build.migrate(url)
    older, client = start(windlass, older_build.services, **older_build.environment)

    path = "/upgraded"
    receiver.answer(path, 503)
    webhook = {"webhook_url": receiver.at(path)}
    receiver.secrets[path] = post(client, "/webhooks", {"url": receiver.at(path), "events": []})["secret"]
    quick = client.submit_many([webhook] * 10)
    later = client.submit_many([{**webhook, "delay_seconds": 5}] * 10)
    wait_until("deliveries that failed", lambda: len(receiver.got(path)) >= 3, seconds=120)
    client.change_provider("http", paused=True)  # a slow machine would have time for every try
    blocked = client.submit(depends_on=[later[0]])["task_id"]
    project = post(client, "/projects", {"name": "looping"})["project_id"]
    for _ in range(ITEMS):
        post(client, f"/projects/{project}/items", {"actor": "probe", "payload": {"seconds": 2}})
    post(client, f"/projects/{project}/run", {"mode": "loop"})
    workflow = post(client, "/workflows", a_fan_out())["workflow_id"]
    schedule = {"name": "steady", "every_seconds": EVERY_SECONDS, "overlap": "allow", "catch_up": "all"}
    post(client, "/schedules", {**schedule, "target": {"task": {"actor": "probe"}}})

    def completed() -> int:
        return len(client.tasks(workflow_id=workflow, status="completed"))

    def runs() -> list[Any]:
        items: list[Any] = client.http.get(f"/api/v1/projects/{project}/runs").json()["items"]
        return items

    wait_until("the list and an element", lambda: completed() >= 2, seconds=120)
    client.change_provider("one-by-one", paused=True)
    wait_until("a second run", lambda: len(runs()) >= 2, seconds=120)
    client.change_provider("probe", paused=True)
    assert completed() < ELEMENTS + 1
    assert len(runs()) < ITEMS
    refused = migration(windlass)
    assert refused.returncode == 1
    assert refused.stderr.count("1 workers of an earlier edition are running") == 1
    stop(older)
    wait_until("a schedule was due meanwhile", lambda: is_due(url), seconds=60)
    assert migration(windlass).returncode == 0
    receiver.answer(path, 200, b"thanks")
    newer, client = start(windlass)
    for provider in ("one-by-one", "probe", "http"):
        client.change_provider(provider, paused=False)

    for task_id in (*quick, *later, blocked):
        assert client.finished(task_id)["status"] == "completed"
    state = f"/api/v1/workflows/{workflow}"
    wait_until("the join", lambda: client.http.get(state).json()["status"] == "completed", seconds=120)
    counts = client.http.get(state).json()["counts"]
    assert (counts["total"], counts["completed"], counts["live"]) == (ELEMENTS + 3, ELEMENTS + 3, 0)
    queue = f"/api/v1/projects/{project}/queue/status"
    wait_until("the loop", lambda: client.http.get(queue).json()["state"] == "idle", seconds=120)
    assert Counter(run["state"] for run in runs()) == {"completed": ITEMS}

    watched = {*quick, *later}
    wait_until("all deliveries", lambda: accepted(client) == watched, seconds=120)
    started = "SELECT due_at FROM schedule_runs WHERE outcome = 'started' ORDER BY due_at"
    wait_until("a second due time", lambda: len(ask(url, started)) >= 2)
    client.http.delete("/api/v1/schedules/steady").raise_for_status()
    due = [row[0] for row in ask(url, started)]
    steps = {(after - before).total_seconds() for before, after in pairwise(due)}
    assert steps == {float(EVERY_SECONDS)}
    completions = ask(url, "SELECT task_id, count(*) FROM task_events WHERE type = 'complete' GROUP BY task_id")
    assert {row[1] for row in completions} == {1}
    assert "Traceback" not in windlass.log()
    stop(newer)


def migration(windlass: Windlass) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "windlass.services.admin.migrate"]
    return subprocess.run(command, env=windlass.environment, capture_output=True, text=True, check=False)


def a_fan_out() -> dict[str, Any]:
    """A list, a task for each of its elements, one at a time, and a join."""
    element = {
        "key": "each",
        "actor": "probe",
        "provider": "one-by-one",
        "for_each": {"$from": "list", "path": "/echo"},
    }
    return {
        "name": "fan-out",
        "tasks": [
            {"key": "list", "actor": "probe", "payload": {"result": list(range(ELEMENTS))}},
            {**element, "payload": {"seconds": 2, "result": {"$item": True}}},
            {"key": "join", "actor": "probe", "depends_on": ["each"]},
        ],
    }


def is_due(url: str) -> bool:
    return bool(ask(url, "SELECT 1 FROM schedules WHERE next_at < clock_timestamp()"))


def accepted(client: Client) -> set[str]:
    """The tasks about which the endpoint has accepted a delivery."""
    (webhook,) = client.http.get("/api/v1/webhooks").json()["items"]
    path = f"/api/v1/webhooks/{webhook['webhook_id']}/deliveries?state=delivered&limit=100"
    return {each["subject"] for each in client.http.get(path).json()["items"]}


def test_an_older_worker_that_wakes_up_after_the_migration_changes_nothing(
    windlass: Windlass, empty_database_url: str, older_build: OlderBuild
) -> None:
    url = empty_database_url
    older_build.migrate(url)
    older, client = start(windlass, older_build.services, **older_build.environment)
    task_id = client.submit(payload={"seconds": 8})["task_id"]
    running = client.wait_until(task_id, "running")
    worker = next(each for each in client.workers() if each["worker_id"] == running["worker_id"])
    frozen = [older["actors"].pid, worker["pid"]]
    for pid in frozen:
        windlass.kill(pid, signal.SIGSTOP)
    stop({name: process for name, process in older.items() if name != "actors"})
    with pytest.raises(OlderWorkersAlive):
        asyncio.run(migrate(url))
    execute(url, f"UPDATE workers SET heartbeat_at = clock_timestamp() - interval '{ALIVE_SECONDS + 1} s'")
    asyncio.run(migrate(url))

    for pid in reversed(frozen):
        windlass.kill(pid, signal.SIGCONT)
    newer, client = start(windlass)
    task = client.finished(task_id)
    assert (task["status"], task["attempt"]) == ("completed", 2)
    claims = ask(url, "SELECT data ->> 'worker_id' FROM task_events WHERE task_id = $1 AND type = 'claim'", task_id)
    assert [row[0] == worker["worker_id"] for row in claims] == [True, False]
    again = client.submit_many([{}] * 20)
    assert {client.finished(each)["worker_id"] for each in again} == {task["worker_id"]}
    stop(newer)


def test_a_forced_migration_goes_ahead_although_a_worker_is_alive(
    windlass: Windlass, empty_database_url: str, older_build: OlderBuild
) -> None:
    older_build.migrate(empty_database_url)
    start(windlass, older_build.services, **older_build.environment)
    asyncio.run(migrate(empty_database_url, force=True))
    with pytest.raises(Exception, match="edition-too-old"):
        ask(empty_database_url, f"SELECT {older_build.schema}.wake_dispatcher()")
