"""Everybody who carries a delivery is killed, and the receiver, too: nothing is missing from its books."""

import signal
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.acceptance.conftest import a_windlass
from tests.acceptance.test_webhooks import GREETING
from tests.conftest import a_virtual_host
from tests.support.installation import Client, Windlass
from tests.support.killable_receiver import KillableReceiver, killable_receiver
from tests.support.servers.databases import ask, migrate
from tests.support.servers.private_servers import Servers
from tests.support.servers.restartable_servers import RestartableServer, restartable_postgres
from tests.support.waiting import wait_until

CONFIG = """
[network]
allow_private = ["127.0.0.1"]

[actors.webhook.retries]
other = [0.2, 0.5, 1, 2, 10]
"""
ENDED = "SELECT task_id::text, status FROM tasks WHERE actor = 'greet'"
DELIVERIES = "SELECT delivery_id::text, subject, state FROM deliveries"
LONG = 120
AT_ONCE = 12


@pytest.fixture(scope="module")
def postgres() -> Iterator[RestartableServer]:
    with restartable_postgres() as postgres:
        migrate(postgres.url)
        yield postgres


@pytest.fixture(scope="module")
def windlass(
    postgres: RestartableServer, servers: Servers, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    directory: Path = tmp_path_factory.mktemp("kills")
    (directory / "greeting.py").write_text(GREETING)
    settings = {"WINDLASS_ACTORS": str(directory / "greeting.py"), "WINDLASS_QUEUES": "webhook.http,own"}
    with (
        a_virtual_host(servers, management) as amqp_url,
        a_windlass(postgres.url, amqp_url, directory, config=CONFIG, actors=("webhook",), **settings) as windlass,
    ):
        windlass.start_all()
        yield windlass


@pytest.fixture
def receiver(tmp_path: Path) -> Iterator[KillableReceiver]:
    with killable_receiver(tmp_path) as receiver:
        yield receiver


def greet_many(client: Client) -> None:
    """Until they are accepted; those of a request that was cut off and stored all the same are told of as well."""
    tasks = [{"actor": "greet", "payload": {"name": "ann" if number % 4 else "nobody"}} for number in range(AT_ONCE)]
    wait_until(
        "they are accepted",
        lambda: client.http.post("/api/v1/tasks/batch", json={"tasks": tasks}).status_code == 201,
        seconds=LONG,
    )


def test_whoever_is_killed_every_end_arrives_under_one_id(
    windlass: Windlass, postgres: RestartableServer, receiver: KillableReceiver
) -> None:
    client = windlass.client
    wait_until("greet is known", lambda: client.http.get("/api/v1/actors/greet").status_code == 200, seconds=LONG)
    body = {"url": receiver.url, "events": ["task.*"]}
    secret = client.http.post("/api/v1/webhooks", json=body).raise_for_status().json()["secret"]
    receiver.start(secret)

    greet_many(client)
    wait_until("some arrive", receiver.books, seconds=LONG)
    for worker in windlass.workers():
        windlass.kill(worker["pid"])
    windlass.dispatcher.kill()
    windlass.dispatcher = windlass.start("dispatcher")

    greet_many(client)
    receiver.kill()
    windlass.kill_api()
    postgres.stop(signal.SIGKILL, with_all_below=True)
    postgres.start()
    windlass.start_api_again()
    receiver.start(secret)

    greet_many(client)
    wait_until(
        "all have ended",
        lambda: {row["status"] for row in ask(postgres.url, ENDED)} <= {"completed", "dead"},
        seconds=LONG,
    )
    ended = ask(postgres.url, ENDED)
    wait_until("all are delivered", lambda: states(postgres.url) == {"delivered"}, seconds=LONG)
    books = receiver.books()
    assert {each["fault"] for each in books} == {None}, "each is verified"
    deliveries = {row["delivery_id"]: row["subject"] for row in ask(postgres.url, DELIVERIES)}
    assert {each["id"]: each["task_id"] for each in books} == deliveries, "none is missing, and none is anybody else's"
    ends = [(each["id"], each["task_id"]) for each in books if each["type"] != "task.retrying"]
    assert sorted(task_id for _, task_id in set(ends)) == sorted(row["task_id"] for row in ended)
    assert len(ended) >= 3 * AT_ONCE


def states(url: str) -> set[str]:
    return {row["state"] for row in ask(url, DELIVERIES)}
