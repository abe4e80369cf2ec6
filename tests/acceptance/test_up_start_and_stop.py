"""The ways in which `windlass up` starts, fails to start and is stopped."""

import asyncio
import os
import re
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator

import asyncpg
import pytest

from tests.support.servers.private_servers import new_directory
from tests.support.up import START_SECONDS, WindlassUp, still_running
from tests.support.waiting import wait_until
from windlass.services.laptop.supervision.stop_signals import ASKED_AGAIN_SECONDS


@pytest.fixture
def installation() -> Iterator[Callable[..., WindlassUp]]:
    """Makes an installation with the given settings; the test starts it."""
    directory = new_directory()
    up = WindlassUp(directory / "data")
    yield up.with_settings
    up.make_sure_that_it_has_stopped()
    shutil.rmtree(directory)


def test_uses_the_servers_that_are_named_though_nobody_reads_what_it_says(
    installation: Callable[..., WindlassUp], database_url: str, amqp_url: str
) -> None:
    up = installation(WINDLASS_DATABASE_URL=database_url, WINDLASS_AMQP_URL=amqp_url)
    reading, writing = os.pipe()
    os.close(reading)
    up.begin(output=writing)
    os.close(writing)
    wait_until("run.json", (up.directory / "run.json").exists, seconds=START_SECONDS)
    assert up.run_file()["postgres"] == {"pid": None, "url": database_url}
    assert up.run_file()["rabbitmq"] == {"pid": None, "url": amqp_url}

    everyone = up.everyone()
    assert up.stop(signal.SIGTERM) == 0
    assert still_running(everyone) == []


def test_with_every_key_nothing_is_faked(
    installation: Callable[..., WindlassUp], database_url: str, amqp_url: str
) -> None:
    keys = dict.fromkeys(("MIDAPI_API_KEY", "LEONARDO_API_KEY", "OPENROUTER_API_KEY"), "a-key-of-somebody")
    up = installation(WINDLASS_DATABASE_URL=database_url, WINDLASS_AMQP_URL=amqp_url, **keys)
    up.start()
    assert "fake_providers" not in up.run_file()
    assert "starting providers" not in up.log
    assert up.stop() == 0


@pytest.fixture
def draining(installation: Callable[..., WindlassUp], database_url: str, amqp_url: str) -> WindlassUp:
    """Asked to stop, and waiting for a task that takes its time."""
    up = installation(WINDLASS_DATABASE_URL=database_url, WINDLASS_AMQP_URL=amqp_url, WINDLASS_DRAIN_SECONDS="600")
    up.start()
    with up.client() as client:
        task = {"actor": "probe", "payload": {"seconds": 600}}
        task_id = client.post("/api/v1/tasks", json=task).json()["task_id"]
        wait_until("running", lambda: client.get(f"/api/v1/tasks/{task_id}").json()["status"] == "running")
    os.kill(up.pid, signal.SIGINT)
    wait_until("it says what it waits for", lambda: "1 task runs: it may end until " in up.log)
    return up


def test_asked_again_it_hands_back_at_once_what_runs(draining: WindlassUp, database_url: str) -> None:
    everyone = draining.everyone()
    since = time.monotonic()
    wait_until("what comes now is another wish", lambda: time.monotonic() > since + ASKED_AGAIN_SECONDS)
    os.kill(draining.pid, signal.SIGINT)
    wait_until("it has heard", lambda: "handing 1 back at once" in draining.log)
    assert draining.wait() == 0
    assert "killing everything" not in draining.log
    assert still_running(everyone) == []
    row = asyncio.run(only_row(database_url, "SELECT status, retry_count FROM tasks"))
    assert row == ("queued", 0), "handed back: the next start goes on with it"


def test_asked_a_third_time_it_kills_what_does_not_listen(draining: WindlassUp) -> None:
    everyone = draining.everyone()
    (guardian,) = [each["pid"] for each in draining.run_file()["actors"][:1]]
    os.kill(guardian, signal.SIGSTOP)
    wait_until("it has ended", draining.has_ended_after_another_interrupt, every=0.3)
    assert "killing everything" in draining.log
    assert still_running(everyone) == []


async def only_row(database_url: str, query: str) -> tuple[object, ...]:
    connection = await asyncpg.connect(database_url)
    try:
        (row,) = await connection.fetch(query)
        return tuple(row)
    finally:
        await connection.close()


def test_a_start_after_a_clean_stop_is_quiet(
    installation: Callable[..., WindlassUp], database_url: str, amqp_url: str
) -> None:
    up = installation(WINDLASS_DATABASE_URL=database_url, WINDLASS_AMQP_URL=amqp_url)
    up.start()
    with up.client() as client:
        ids = [client.post("/api/v1/tasks", json={"actor": "probe"}).json()["task_id"] for _ in range(5)]
        for task_id in ids:
            assert client.get(f"/api/v1/tasks/{task_id}", params={"wait": 50}).json()["status"] == "completed"
    wait_until("said", lambda: f"task {ids[0]}: attempt 1 completed in " in up.log)
    assert up.stop() == 0
    stopped = up.log
    up.start()
    assert up.stop() == 0
    for log in (stopped, up.log):
        loud = re.compile(r" (WARNING|ERROR|CRITICAL) |taken back|[Rr]inging again|rung for again")
        told = [line for line in log.splitlines() if loud.search(line)]
        assert [line for line in told if "NO SANDBOX" not in line] == [], "but for what this machine has not"


def test_interrupted_while_it_starts_it_stops_what_it_had_started(installation: Callable[..., WindlassUp]) -> None:
    up = installation()
    up.begin()
    wait_until("ready", lambda: "ready to accept connections" in up.log, seconds=START_SECONDS)
    everyone = up.everyone()
    assert up.stop(signal.SIGHUP) == 0
    assert still_running(everyone) == []
    assert up.output == ""


def test_a_port_that_is_taken_is_named(installation: Callable[..., WindlassUp]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        up = installation(WINDLASS_PORT=str(port))
        up.begin()
        assert up.wait() == 1
    assert f"port {port} is taken by another program: name a free one with WINDLASS_PORT" in up.log


def test_a_failed_start_says_why_and_leaves_nothing(installation: Callable[..., WindlassUp], amqp_url: str) -> None:
    up = installation(
        WINDLASS_DATABASE_URL="postgresql://127.0.0.1:1/nowhere?sslmode=nonsense",
        WINDLASS_AMQP_URL=amqp_url,
    )
    up.begin()
    everyone = up.everyone()
    assert up.wait() == 1
    assert "the migration failed (exit code" in up.log
    assert still_running(everyone) == []
