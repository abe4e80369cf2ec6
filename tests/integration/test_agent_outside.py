"""An agent whose network leads outside alone, on a machine of its own that nobody else is on."""

import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.support.agents_at_work import skip_without_a_sandbox
from tests.support.installation import PROJECT
from tests.support.outside_drill import LINK_LOCAL, LOOPBACK, PRIVATE, PUBLIC
from tests.support.waiting import wait_until
from windlass.services.actors.subprocess import outside

UNPACKED = Path(sys.prefix) / "slirp4netns" / "usr"
"""Where `make test` puts the distribution's package; nothing is installed."""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root may make the machine that this is tried on")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A directory with slirp4netns in it, as an operator's machine has it on its path."""
    program = UNPACKED / "bin" / "slirp4netns"
    if not program.exists():
        pytest.skip("no slirp4netns from apt-get here")
    libraries = next((UNPACKED / "lib").glob("*-linux-gnu*"))
    (tmp_path / "slirp4netns").write_text(f'#!/bin/sh\nLD_LIBRARY_PATH={libraries} exec {program} "$@"\n')
    (tmp_path / "slirp4netns").chmod(0o755)
    return tmp_path


def reached(directory: Path, network: str, *, path: str) -> dict[str, Any]:
    command = ["unshare", "--net", sys.executable, "-m", "tests.support.outside_drill", str(directory), network]
    done = subprocess.run(
        command, cwd=PROJECT, env={**os.environ, "PATH": path}, capture_output=True, text=True, check=False, timeout=90
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert told["error"] is None
    found: dict[str, Any] = told["result"]
    return found


def test_where_slirp4netns_is_at_hand_it_reaches_public_addresses_and_no_others(
    open_path: Path, programs: Path
) -> None:
    skip_without_a_sandbox(open_path)
    told = reached(open_path, "true", path=f"{programs}:{os.environ['PATH']}")
    assert told["reached"].pop(PUBLIC) == "hello"
    assert set(told["reached"]) == {PRIVATE, LINK_LOCAL, LOOPBACK, "10.0.2.2"}
    assert "hello" not in told["reached"].values()
    assert "nameserver 10.0.2.3" in told["resolver"]


def test_the_machine_s_own_network_is_there_for_who_asks_for_it_by_name(open_path: Path, programs: Path) -> None:
    skip_without_a_sandbox(open_path)
    told = reached(open_path, "host", path=f"{programs}:{os.environ['PATH']}")
    assert {told["reached"][host] for host in (PUBLIC, PRIVATE, LINK_LOCAL, LOOPBACK)} == {"hello"}


def test_a_way_out_that_cannot_be_made_is_none(open_path: Path, tmp_path: Path) -> None:
    """Never the machine's network instead of it."""
    skip_without_a_sandbox(open_path)
    (tmp_path / "slirp4netns").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "slirp4netns").chmod(0o755)
    command = ["unshare", "--net", sys.executable, "-m", "tests.support.outside_drill", str(open_path), "true"]
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True, timeout=90)
    told = json.loads(done.stdout)
    assert told["result"] is None
    assert "its network could not be made: slirp4netns did not begin" in told["error"]


RAISE_LOOPBACK = """
import fcntl, socket, struct
SIOCSIFFLAGS, IFF_UP = 0x8914, 1
fcntl.ioctl(socket.socket(), SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", IFF_UP))
"""


def test_nothing_is_put_into_its_network_before_bubblewrap_has_made_the_loopback(
    open_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_without_a_sandbox(open_path)
    monkeypatch.setattr(outside, "START_SECONDS", 60)
    with subprocess.Popen(["unshare", "--net", "sleep", "200"]) as alone:
        try:
            own = Path("/proc/self/ns/net").readlink()
            wait_until("it has a network", lambda: Path(f"/proc/{alone.pid}/ns/net").readlink() != own)
            shut: list[bool] = []
            shutting = threading.Thread(target=lambda: shut.append(outside._shut_what_is_private(alone.pid)))
            shutting.start()
            shutting.join(0.5)
            assert shutting.is_alive()
            command = ["nsenter", f"--net=/proc/{alone.pid}/ns/net", sys.executable, "-c", RAISE_LOOPBACK]
            subprocess.run(command, check=True)
            shutting.join()
            assert shut == [True]
        finally:
            alone.kill()
