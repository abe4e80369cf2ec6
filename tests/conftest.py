"""What every test can ask for: a database and a virtual host of its own, on servers started once per run."""

import gc
import os
import signal
import sys
import uuid
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit, urlunsplit

import httpx
import pytest
from hypothesis import HealthCheck, settings

from tests.support import authorities, fork_server, open_sockets
from tests.support.older_build import OlderBuild, unpacked
from tests.support.providers import real_providers
from tests.support.servers.databases import create_database, drop_database, migrate
from tests.support.servers.private_servers import Servers, throw_away_servers

TEMPLATE = "migrated"


def pytest_configure() -> None:
    # Told to end, a test run takes everything down in order, as after Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # The tests' settings are their own, whatever the caller's shell exports.
    for name in [
        name for name in os.environ if name.startswith("WINDLASS_") and not name.startswith(real_providers.OURS)
    ]:
        del os.environ[name]
    real_providers.put_keys_aside()
    open_sockets.watch()
    authorities.read_once()
    # An example that takes long tells of a busy machine, and one that nobody has seen before comes by chance.
    settings.register_profile("patient", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")


def pytest_unconfigure() -> None:
    fork_server.end()


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Tests are kept with their rewritten asserts, also where no bytecode is to be written: rewriting takes longer than
    everything else before the first test. What a test imports is not kept.

    Nobody looks for garbage among what is collected here: thousands of tests and modules, which all stay."""
    wish, sys.dont_write_bytecode = sys.dont_write_bytecode, False
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()
        sys.dont_write_bytecode = wish


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    with throw_away_servers() as servers:
        yield servers


@pytest.fixture
def database_url(servers: Servers, migrated_template: str) -> Iterator[str]:
    """A database with the newest schema and nothing in it."""
    with a_database(servers, migrated_template) as url:
        yield url


@pytest.fixture
def empty_database_url(servers: Servers) -> Iterator[str]:
    """A database without any schema."""
    with a_database(servers, "template1") as url:
        yield url


@pytest.fixture
def amqp_url(servers: Servers, management: httpx.Client) -> Iterator[str]:
    """A virtual host with nothing in it."""
    with a_virtual_host(servers, management) as url:
        yield url


@contextmanager
def a_database(servers: Servers, template: str) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    create_database(servers.database_url, name, template)
    yield _with_path(servers.database_url, name)
    drop_database(servers.database_url, name)


@contextmanager
def a_virtual_host(servers: Servers, management: httpx.Client) -> Iterator[str]:
    name = f"test_{uuid.uuid4().hex}"
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    management.put(f"/api/vhosts/{name}").raise_for_status()
    user = urlsplit(servers.amqp_url).username
    management.put(f"/api/permissions/{name}/{user}", json=everything).raise_for_status()
    yield _with_path(servers.amqp_url, name)
    management.delete(f"/api/vhosts/{name}").raise_for_status()


@pytest.fixture(scope="session")
def management(servers: Servers) -> Iterator[httpx.Client]:
    """RabbitMQ's own HTTP API, for looking into queues from outside."""
    assert servers.management_url
    with httpx.Client(base_url=servers.management_url, timeout=120, trust_env=False) as client:
        yield client


@pytest.fixture(scope="session")
def migrated_template(servers: Servers) -> str:
    create_database(servers.database_url, TEMPLATE, "template1")
    migrate(_with_path(servers.database_url, TEMPLATE))
    return TEMPLATE


@pytest.fixture(scope="session")
def older_build() -> Iterator[OlderBuild]:
    """The sources of the edition before this one, ready to run."""
    with unpacked() as build:
        yield build


def _with_path(url: str, path: str) -> str:
    return urlunsplit(urlsplit(url)._replace(path=f"/{path}"))
