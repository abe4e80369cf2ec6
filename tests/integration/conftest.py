"""The fake providers for the tests that speak to them, one process for all."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.providers.fake_providers import FakeProviders, fake_providers
from tests.support.servers.private_servers import open_directory


@pytest.fixture(scope="session")
def fake_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeProviders]:
    with fake_providers(tmp_path_factory.mktemp("fake")) as fake:
        yield fake


@pytest.fixture
def fake(fake_server: FakeProviders) -> FakeProviders:
    """With empty books, and jobs that take next to no time; a test may leave it killed."""
    if not fake_server.is_running:
        fake_server.start()
    fake_server.reset()
    fake_server.change(job_seconds=0.1)
    return fake_server


@pytest.fixture
def open_path() -> Iterator[Path]:
    """Unlike pytest's own, open to the account that agents run under when root runs the tests."""
    with open_directory() as directory:
        yield directory
