"""A whole Windlass for each acceptance test, and its log when the test fails."""

from collections.abc import Iterator
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from tests.windlass import Client, Windlass

PROVIDERS = """
[providers.one-by-one]
actor = "probe"
limit = 1
"""


@pytest.fixture
def stopped_windlass(database_url: str, amqp_url: str, tmp_path: Path) -> Iterator[Windlass]:
    """Nothing runs yet: the test starts what it wants."""
    config = tmp_path / "windlass.toml"
    config.write_text(PROVIDERS)
    windlass = Windlass(database_url, amqp_url, tmp_path, WINDLASS_CONFIG=str(config))
    try:
        yield windlass
    finally:
        windlass.stop()
        print(windlass.log() if (tmp_path / "log").exists() else "")  # pytest shows it when the test failed


@pytest.fixture
def windlass(stopped_windlass: Windlass) -> Windlass:
    stopped_windlass.start_all()
    return stopped_windlass


@pytest.fixture
def channel(amqp_url: str) -> Iterator[BlockingChannel]:
    """RabbitMQ as an outsider reaches it, for ringing, purging and counting."""
    connection = pika.BlockingConnection(pika.URLParameters(amqp_url))
    yield connection.channel()
    connection.close()


@pytest.fixture
def client(windlass: Windlass) -> Client:
    return windlass.client
