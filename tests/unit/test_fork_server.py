"""A service that was forked is the process that `python -m` would have made of it."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.support.fork_server import ForkedProcess, ForkServer, can_start
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.shared.process.procfs import ProcessIdentity

FAKE = "windlass.services.fake_providers"


@pytest.fixture(scope="module")
def server() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.end()


@pytest.fixture
def forked(server: ForkServer, tmp_path: Path) -> Iterator[ForkedProcess]:
    """Answers, so its environment has reached it; the log is its standard error."""
    url = f"http://127.0.0.1:{free_port()}"
    process = start(server, tmp_path, WINDLASS_FAKE_PROVIDERS_URL=url)
    wait_until("it answers", lambda: answers(url), seconds=60)
    assert url in (tmp_path / "log").read_text()
    yield process
    process.kill()
    process.wait()


def start(server: ForkServer, directory: Path, **settings: str) -> ForkedProcess:
    environment = {**os.environ, "WINDLASS_DATA_DIR": str(directory), "WINDLASS_LOG_FORMAT": "text", **settings}
    with (directory / "log").open("ab") as log:
        return server.start(FAKE, environment, log.fileno())


def answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/__control/alive", trust_env=False).is_success
    except httpx.TransportError:
        return False


def test_it_is_told_to_stop_and_tells_how_it_ended(forked: ForkedProcess) -> None:
    assert forked.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        forked.wait(0.01)
    forked.terminate()
    assert (forked.wait(60), forked.poll(), forked.returncode) == (0, 0, 0)


def test_killed_it_has_its_number_until_it_is_waited_for(forked: ForkedProcess) -> None:
    os.kill(forked.pid, signal.SIGKILL)
    wait_until("a zombie", lambda: " Z " in Path(f"/proc/{forked.pid}/stat").read_text())
    assert forked.wait(60) == -signal.SIGKILL
    assert not Path(f"/proc/{forked.pid}").exists()
    forked.kill()  # nobody else's process


def test_it_has_no_end_of_the_server_s_socket(server: ForkServer, forked: ForkedProcess) -> None:
    """Whoever held the one would never let the server end."""
    assert sockets(server.pid)
    assert not sockets(forked.pid) & sockets(server.pid)


def sockets(pid: int) -> set[str]:
    """A descriptor may be closed between the listing and the look: then it is none of them."""
    found = set()
    for each in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):
            found.add(str(each.readlink()))
    return {each for each in found if each.startswith("socket:")}


def test_what_is_wrong_with_its_settings_is_said_as_always(server: ForkServer, tmp_path: Path) -> None:
    process = start(server, tmp_path, WINDLASS_FAKE_PROVIDERS_URL="nonsense")
    assert process.wait(60) != 0
    assert "WINDLASS_FAKE_PROVIDERS_URL" in (tmp_path / "log").read_text()


def test_when_the_tests_are_gone_so_is_everything(tmp_path: Path) -> None:
    server = ForkServer()
    process = start(server, tmp_path, WINDLASS_FAKE_PROVIDERS_URL=f"http://127.0.0.1:{free_port()}")
    identity = ProcessIdentity.of(process.pid)
    assert identity
    server.end()
    wait_until("it is gone", lambda: not identity.is_running())


def test_what_has_a_python_of_its_own_is_not_forked() -> None:
    assert can_start(FAKE, {**os.environ, "WINDLASS_LOG_FORMAT": "text"})
    assert not can_start(FAKE, {**os.environ, "PYTHONPATH": "elsewhere"})
    assert not can_start("tests.support.fork_server", os.environ)
