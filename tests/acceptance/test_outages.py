"""Postgres or RabbitMQ away: tasks are accepted, nothing is lost, and no retry is used up by the outage."""

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from tests.acceptance.conftest import let_the_next_attempt_be_short
from tests.support.an_api import new_key
from tests.support.installation import SHORT_LEASES, Client, Windlass
from tests.support.metrics import Said, ask
from tests.support.servers.broker_alarm import memory_alarm
from tests.support.servers.private_servers import Servers, new_directory
from tests.support.up import READY, WindlassUp
from tests.support.waiting import wait_until
from windlass.services.api.operators.health import HEALTH_SECONDS
from windlass.shared.process.procfs import ProcessIdentity, descendants


@pytest.fixture(scope="module")
def up() -> Iterator[WindlassUp]:
    directory = new_directory()
    up = WindlassUp(directory / "data").with_settings(**SHORT_LEASES)
    up.start()
    yield up
    up.make_sure_that_it_has_stopped()
    shutil.rmtree(directory)


@pytest.fixture
def up_client(up: WindlassUp) -> Iterator[Client]:
    ready = READY.search(up.output)
    assert ready
    client = Client(ready[1], ready[2])
    yield client
    client.close()


@contextmanager
def nobody_starts_it_again(up: WindlassUp) -> Iterator[None]:
    """The supervisor is frozen: what was killed stays away until everything has been looked at."""
    os.kill(up.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(up.pid, signal.SIGCONT)


def test_tasks_are_accepted_while_rabbitmq_is_away_and_run_when_it_is_back(up: WindlassUp, up_client: Client) -> None:
    killed = up.pid_of("rabbitmq")
    running = up_client.submit(payload={"seconds": 2})["task_id"]
    up_client.wait_until(running, "running")
    with nobody_starts_it_again(up):
        os.kill(killed, signal.SIGKILL)
        ids = up_client.submit_many([{}] * 30)
        waiting = up_client.submit()
        assert waiting["status"] == "queued"
        assert up_client.http.get("/health/ready").status_code == 200
        wait_until("it is said", lambda: why(up_client, waiting["task_id"]) == "broker-away")
        wait_until("also in its health", lambda: broker_of(up_client)["status"] == "unhealthy")
    wait_until("RabbitMQ is back", lambda: up.pid_of("rabbitmq") != killed, seconds=150)
    for task_id in [running, *ids]:
        task = up_client.finished(task_id)
        assert (task["status"], task["retry_count"], task["attempt"]) == ("completed", 0, 1)
    everyone = ["actors", "agents", "dispatcher", "janitor"]
    wait_until("all are connected", lambda: who_says(up, "connected to RabbitMQ again") == everyone)
    assert who_says(up, "no connection to RabbitMQ") == everyone, "each once, however often it tried"
    assert [line for line in up.output.splitlines() if " CRITICAL " in line] == []


def who_says(up: WindlassUp, words: str) -> list[str]:
    """Whose line has them, once for each line."""
    return sorted(line.partition("|")[0].strip() for line in up.log.splitlines() if words in line)


def test_a_rabbitmq_that_takes_no_messages_is_told_of_for_as_long_as_it_does(up: WindlassUp, up_client: Client) -> None:
    """Its memory alarm: nothing fails, and nothing starts either."""
    up_client.wait_until_healthy()
    with memory_alarm(up.pid_of("rabbitmq")):
        task_id = up_client.submit()["task_id"]
        wait_until("it is said", lambda: why(up_client, task_id) == "broker-blocked")
        wait_until("also in its health", lambda: broker_of(up_client)["status"] == "degraded")
        health = up_client.http.get("/health").json()
        broker = health["components"].pop("broker")
        assert (health["status"], broker["status"]) == ("degraded", "degraded")
        assert "short of memory" in broker["detail"]
        assert {component["status"] for component in health["components"].values()} == {"healthy"}
        wait_until("it is measured", lambda: dispatcher_says(up).values("windlass_broker_blocked") == [1])
        assert up_client.get(task_id)["status"] == "queued"
    task = up_client.finished(task_id)
    assert (task["status"], task["attempt"], task["retry_count"]) == ("completed", 1, 0)
    up_client.wait_until_healthy()
    wait_until("it is over", lambda: dispatcher_says(up).values("windlass_broker_blocked") == [0])


def why(client: Client, task_id: str) -> str:
    return str(client.http.get(f"/api/v1/tasks/{task_id}/why").raise_for_status().json()["reason"])


def broker_of(client: Client) -> dict[str, str]:
    component: dict[str, str] = client.http.get("/health").json()["components"]["broker"]
    return component


def dispatcher_says(up: WindlassUp) -> Said:
    listed = json.loads((up.directory / "metrics-targets.json").read_text())
    (address,) = [each["targets"][0] for each in listed if each["labels"]["service"] == "dispatcher"]
    return Said(ask(int(address.rpartition(":")[2])))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT], ids=["fast", "immediate"])
def test_a_restart_of_postgres_under_load_costs_no_retry(
    up: WindlassUp, up_client: Client, how: signal.Signals
) -> None:
    ids = up_client.submit_many([{"payload": {"seconds": 3 + number / 20, "steps": 10}} for number in range(20)])
    wait_until("some of them run", lambda: up_client.tasks(status="running"))
    stopped = up.pid_of("postgres")
    answers: list[httpx.Response] = []

    def is_accepted() -> bool:
        answers.append(up_client.http.post("/api/v1/tasks", json={"actor": "probe"}))
        return answers[-1].status_code == 201

    with nobody_starts_it_again(up):
        os.kill(stopped, how)
        wait_until("it is missed", lambda: not is_accepted())
    wait_until("Postgres is back", lambda: is_accepted() and up.pid_of("postgres") != stopped, seconds=150)
    refused = [answer for answer in answers if answer.status_code != 201]
    assert refused
    assert {answer.status_code for answer in refused} == {503}
    assert all(answer.headers["retry-after"] and answer.json()["code"] for answer in refused)
    accepted = [answer.json()["task_id"] for answer in answers if answer.status_code == 201]
    for task_id in ids + accepted:
        task = up_client.finished(task_id)
        assert (task["status"], task["retry_count"]) == ("completed", 0)
        assert up_client.story(task_id).count("complete") == 1


@contextmanager
def frozen(pid: int) -> Iterator[None]:
    """A server that holds its connections and answers nothing: first who could start more, and then all others. One
    may end by itself just before."""
    server = ProcessIdentity.of(pid)
    assert server is not None
    try:
        server.send(signal.SIGSTOP)
        for each in descendants(pid):
            each.send(signal.SIGSTOP)
        yield
    finally:
        for each in [server, *descendants(pid)]:
            each.send(signal.SIGCONT)


def test_health_answers_within_seconds_while_postgres_is_frozen(stopped_windlass: Windlass, servers: Servers) -> None:
    windlass = stopped_windlass
    windlass.api = windlass.start("api")
    windlass.wait_until_answering()
    admin = windlass.client
    seen, unseen = (admin.with_key(new_key(admin, "user", user_id)) for user_id in ("ada", "bea"))
    assert seen.http.get("/api/v1/tasks").status_code == 200
    with frozen(servers.postgres_pid):
        for client in (seen, unseen, admin.with_key("none")):
            began = time.monotonic()
            health = client.http.get("/health").json()
            assert time.monotonic() - began < HEALTH_SECONDS + 1.5
            assert health["status"] == "unhealthy"
            if client is seen:
                assert "no answer within" in health["components"]["postgres"]["detail"]


def test_an_outage_longer_than_the_lease_hands_work_back_for_free(stopped_windlass: Windlass, servers: Servers) -> None:
    """Postgres frozen past the lease: workers stop their work in time, and hand it back when it answers again."""
    windlass = stopped_windlass
    # Seconds between the worker's own stop and the guardian's deadline, which a busy machine may need; and two
    # heartbeats in which it comes back to say so, before the janitor judges.
    lease_seconds = 20
    windlass.environment |= {
        "WINDLASS_LEASE_SECONDS": str(lease_seconds),
        "WINDLASS_HEARTBEAT_SECONDS": "3",
        "WINDLASS_STOP_GRACE_SECONDS": "5",
    }
    windlass.start_all()
    client = windlass.client
    ids = client.submit_many([{"payload": {"seconds": 600}} for _ in range(4)])
    for task_id in ids:
        client.wait_until(task_id, "running")
    let_the_next_attempt_be_short(windlass, *ids)
    worker = client.workers()[0]
    with frozen(servers.postgres_pid):
        since = time.monotonic()
        # Frozen in the middle of a renewal, Postgres looks as if somebody had locked the rows.
        stopped = re.compile("their leases cannot be renewed|stopping it, for somebody keeps its row locked")
        wait_until("the work was stopped", lambda: stopped.search(windlass.log()))
        wait_until("past every lease", lambda: time.monotonic() > since + lease_seconds + 1)
    for task_id in ids:
        task = client.finished(task_id)
        assert (task["status"], task["retry_count"]) == ("completed", 0)
        assert client.story(task_id)[:3] == ["submit", "claim", "interrupt"]
    assert client.workers()[0]["worker_id"] == worker["worker_id"], "nobody had to be killed for it"
