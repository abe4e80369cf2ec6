"""The package as the image installs it, built once for all who look at it."""

from pathlib import Path

import pytest

from tests.deploy import wheels


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return wheels.build(tmp_path_factory.mktemp("wheel"))
