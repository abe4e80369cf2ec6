"""The private Postgres and RabbitMQ: reachable from here only, durable, gone when they should be."""

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pika
import pytest

from tests.support.servers.listening import is_loopback, listening_addresses
from tests.support.servers.private_servers import Servers, open_directory, running_servers
from tests.support.up import still_running
from tests.support.waiting import wait_until
from windlass.services.laptop.servers.cluster import place_for
from windlass.services.laptop.supervision.unit import StartFailure
from windlass.shared.process.accounts import account_for_postgres
from windlass.shared.process.procfs import ProcessIdentity, descendants

QUEUE = "letters"
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs Postgres as another user")


@pytest.fixture
def directory() -> Iterator[Path]:
    with open_directory() as path:
        yield path


def test_what_was_stored_is_there_after_a_stop_and_after_a_crash(directory: Path) -> None:
    with running_servers(directory) as first:
        query(first, "CREATE TABLE letters (text text)")
        store(first, "one")
        everyone = family(first)
        addresses = listening_addresses(process.pid for process in everyone)
        assert "127.0.0.1" in addresses
        assert all(map(is_loopback, addresses)), addresses
        durability = "SELECT setting FROM pg_settings WHERE name IN ('fsync', 'full_page_writes', 'synchronous_commit')"
        assert query(first, durability) == ["on", "on", "on"]
        assert query(first, "SHOW idle_in_transaction_session_timeout") == ["10s"], "for strangers, too"
        assert query(first, "SHOW autovacuum_naptime") == ["10s"]
    assert still_running(everyone) == [], "a stop leaves nothing behind"

    with running_servers(directory) as second:
        assert (second.database_url, second.amqp_url) == (first.database_url, first.amqp_url)
        store(second, "two")
        everyone = family(second)
        for process in everyone:
            process.send(signal.SIGKILL)
    wait_until("all are gone", lambda: not still_running(everyone))

    # The lock file that a crash leaves behind may name a process that is by now somebody else's.
    with somebody_elses_process() as pid:
        lock_file = directory / "postgres" / "data" / "postmaster.pid"
        if lock_file.exists():  # Postgres may just have taken it along
            lock_file.write_text(f"{pid}\n" + lock_file.read_text().partition("\n")[2])
        with running_servers(directory) as third:
            assert query(third, "SELECT text FROM letters ORDER BY text") == ["one", "two"]
            assert letters_in_the_queue(third) == ["one", "two"]
            everyone = family(third)
            os.kill(third.pid, signal.SIGKILL)
            wait_until("all are gone", lambda: not still_running(everyone))


@needs_root
def test_postgres_finds_shelter_when_its_user_cannot_reach_the_directory(directory: Path) -> None:
    account = account_for_postgres()
    closed = directory / "closed"
    closed.mkdir(mode=0o700)
    said: list[str] = []
    data = place_for(closed, account, said.append)
    try:
        assert data.parent.parent == Path("/var/lib/windlass")
        assert account
        assert account.can_reach(data.parent)
        assert str(data.parent) in said[0]
        with pytest.raises(StartFailure, match="is gone"):
            place_for(closed, account, said.append)
        data.mkdir()
        assert place_for(closed, account, said.append) == data, "and is found there again"
    finally:
        shutil.rmtree(data.parent)


def family(servers: Servers) -> list[ProcessIdentity]:
    keeper = ProcessIdentity.of(servers.pid)
    assert keeper
    return [keeper, *descendants(servers.pid)]


def store(servers: Servers, text: str) -> None:
    """Where it must survive: in a row that is committed, in a message that is confirmed."""
    query(servers, f"INSERT INTO letters VALUES ('{text}')")
    with channel(servers) as open_channel:
        open_channel.confirm_delivery()
        persistent = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent)
        open_channel.basic_publish("", QUEUE, text.encode(), persistent, mandatory=True)


def query(servers: Servers, statement: str) -> list[Any]:
    async def run() -> list[Any]:
        connection = await asyncpg.connect(servers.database_url)
        try:
            return [row[0] for row in await connection.fetch(statement)]
        finally:
            await connection.close()

    return asyncio.run(run())


def letters_in_the_queue(servers: Servers) -> list[str]:
    with channel(servers) as open_channel:
        found = []
        while (letter := open_channel.basic_get(QUEUE))[2] is not None:
            found.append(letter[2].decode())
        return found


@contextlib.contextmanager
def channel(servers: Servers) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.URLParameters(servers.amqp_url))
    try:
        open_channel = connection.channel()
        open_channel.queue_declare(QUEUE, durable=True)
        yield open_channel
    finally:
        connection.close()


@contextlib.contextmanager
def somebody_elses_process() -> Iterator[int]:
    """Of the user that Postgres runs as: one that it may signal and would take for its predecessor."""
    account = account_for_postgres()
    process = subprocess.Popen(["sleep", "600"], user=account.uid if account else None)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()
