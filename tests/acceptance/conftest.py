"""A whole Windlass for an acceptance test or for a module of them, and its log when one fails."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.conftest import a_database, a_virtual_host
from tests.support.installation import Client, Windlass
from tests.support.servers.databases import execute
from tests.support.servers.private_servers import Servers
from windlass.shared.settings import Settings

PROVIDERS = """
[providers.one-by-one]
actor = "probe"
limit = 1
"""
LEASE_SECONDS = 8
"""A worker that the machine holds up for some seconds has not lost what it does."""


@pytest.fixture
def stopped_windlass(database_url: str, amqp_url: str, tmp_path: Path) -> Iterator[Windlass]:
    """Nothing runs yet: the test starts what it wants."""
    with a_windlass(database_url, amqp_url, tmp_path) as windlass:
        yield windlass


@pytest.fixture(scope="module")
def module_windlass(
    servers: Servers, migrated_template: str, management: httpx.Client, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Windlass]:
    """One for all tests of a module that can bear each other's tasks; nothing runs yet."""
    directory = tmp_path_factory.mktemp("windlass")
    with a_windlass_apart(servers, migrated_template, management, directory) as windlass:
        yield windlass


@pytest.fixture(scope="module")
def running_windlass(module_windlass: Windlass) -> Windlass:
    """The module's one, with everything running; for tests that kill nothing."""
    module_windlass.start_all()
    return module_windlass


@pytest.fixture
def mended_windlass(running_windlass: Windlass) -> Windlass:
    """The same for tests that kill: what the one before has left dead or frozen is started again, which is quicker than
    everything anew. Its tasks and the workers that it lost are still listed."""
    running_windlass.mend()
    return running_windlass


@contextmanager
def a_windlass_apart(
    servers: Servers,
    template: str,
    management: httpx.Client,
    directory: Path,
    *,
    config: str = PROVIDERS,
    actors: tuple[str, ...] = ("probe",),
    **settings: str,
) -> Iterator[Windlass]:
    """On a database and a virtual host of its own, for as long as its fixture lives; nothing runs yet."""
    with (
        a_database(servers, template) as database_url,
        a_virtual_host(servers, management) as amqp_url,
        a_windlass(database_url, amqp_url, directory, config=config, actors=actors, **settings) as windlass,
    ):
        yield windlass


@contextmanager
def a_windlass(
    database_url: str,
    amqp_url: str,
    directory: Path,
    *,
    config: str = PROVIDERS,
    actors: tuple[str, ...] = ("probe",),
    **settings: str,
) -> Iterator[Windlass]:
    """Its workers serve the actors that the test is about, and load nothing else."""
    file = directory / "windlass.toml"
    file.write_text(config)
    queues = ",".join(Settings(config=file).consumed_queues(actors))
    usual = {"WINDLASS_CONFIG": str(file), "WINDLASS_QUEUES": queues, "WINDLASS_LEASE_SECONDS": str(LEASE_SECONDS)}
    windlass = Windlass(database_url, amqp_url, directory, **{**usual, **settings})
    try:
        yield windlass
    finally:
        windlass.stop()
        print(windlass.log() if (directory / "log").exists() else "")  # pytest shows it when the test failed


@pytest.fixture
def windlass(stopped_windlass: Windlass) -> Windlass:
    stopped_windlass.start_all()
    return stopped_windlass


def let_the_next_attempt_be_short(windlass: Windlass, *task_ids: str) -> None:
    """Of probes that run and would run for long: they have read for how long, and whoever begins them anew reads that
    it is for no time. So they are under way when they are harmed, and end soon after."""
    ids = ", ".join(f"'{task_id}'" for task_id in task_ids)
    shorter = f"UPDATE tasks SET payload = payload - 'seconds' WHERE task_id IN ({ids})"
    execute(windlass.environment["WINDLASS_DATABASE_URL"], shorter)


@contextmanager
def a_channel(amqp_url: str) -> Iterator[BlockingChannel]:
    parameters = pika.URLParameters(amqp_url)
    parameters.heartbeat = 0  # nobody would answer one while a test waits for something else
    connection = pika.BlockingConnection(parameters)
    yield connection.channel()
    connection.close()


@pytest.fixture
def channel(amqp_url: str) -> Iterator[BlockingChannel]:
    """RabbitMQ as an outsider reaches it, for ringing, purging and counting."""
    with a_channel(amqp_url) as channel:
        yield channel


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client
