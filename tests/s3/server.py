"""A real S3 server for a test: `moto_server` as a process, from an environment of its own (`make test` builds it)."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.installation import leash
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port

PYTHON = Path(sys.prefix) / "s3" / "bin" / "python"


@contextmanager
def an_s3_server(directory: Path) -> Iterator[str]:
    """Its URL; it holds what it is given in memory."""
    if not PYTHON.exists():
        pytest.fail("the S3 server is not installed: `make test` does it, or `make .venv/.s3` alone")
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    with (directory / "s3.log").open("wb") as log:
        command = [*leash(), str(PYTHON), "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    try:
        wait_until("an S3 server", lambda: _answers(url), seconds=120)
        yield url
    finally:
        process.kill()
        process.wait()


def make_bucket(url: str, name: str) -> None:
    httpx.put(f"{url}/{name}", timeout=60, trust_env=False).raise_for_status()


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/moto-api/", trust_env=False).is_success
    except httpx.TransportError:
        return False
