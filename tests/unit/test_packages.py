"""The first thing that runs on a new machine, with nothing but the system's Python."""

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers.private_servers import new_directory
from windlass.services.laptop.packages import find_postgres, packaged_services_stay_off

SCRIPT = Path(__file__).parents[2] / "services" / "laptop" / "packages.py"
IS_ROOT = os.geteuid() == 0
# The interpreter of a virtual environment in root's home is closed to others.
SYSTEM_PYTHON = "/usr/bin/python3" if IS_ROOT else sys.executable
INSTALL = r"    sudo apt-get install --yes --no-install-recommends {packages}( python3-venv)?"

needs_system_python = pytest.mark.skipif(not Path(SYSTEM_PYTHON).exists(), reason=f"no {SYSTEM_PYTHON} here")


@pytest.fixture
def bare_path() -> Iterator[str]:
    """A PATH on which there is apt-get and nothing else: no Erlang, no Docker."""
    directory = new_directory()
    directory.chmod(0o755)
    (directory / "apt-get").touch(mode=0o755)
    yield str(directory)
    shutil.rmtree(directory)


def run_as_ordinary_user(
    path: str, before: str = "", arguments: str = "", **variables: str
) -> subprocess.CompletedProcess[str]:
    """Runs the script, read from standard input, since its file may be out of an ordinary user's reach."""
    drop = "setpriv --reuid=65534 --regid=65534 --clear-groups" if IS_ROOT else ""
    command = f"{before} exec {drop} env -i PATH={path} {' '.join(f'{k}={v}' for k, v in variables.items())}"
    return subprocess.run(
        ["unshare", "--mount", "sh", "-c", f"{command} {SYSTEM_PYTHON} - {arguments}"]
        if before
        else ["sh", "-c", f"{command} {SYSTEM_PYTHON} - {arguments}"],
        input=SCRIPT.read_text(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@needs_system_python
def test_tells_who_tests_the_page_how_to_get_a_browser(bare_path: str) -> None:
    done = run_as_ordinary_user(bare_path, arguments="--browser")
    assert done.returncode == 1
    assert re.search(
        r"\n    sudo apt-get install --yes --no-install-recommends chromium fonts-dejavu-core libatomic1\n", done.stderr
    )
    assert "postgresql" not in done.stderr


def test_is_silent_and_quick_when_everything_is_there() -> None:
    began = time.monotonic()
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert time.monotonic() - began < 60


@needs_system_python
def test_tells_an_ordinary_user_the_line_to_run(bare_path: str) -> None:
    done = run_as_ordinary_user(bare_path)
    assert done.returncode == 1
    assert re.fullmatch(INSTALL.format(packages="rabbitmq-server"), done.stderr.splitlines()[-1]), done.stderr


@needs_system_python
@pytest.mark.skipif(not IS_ROOT, reason="only root can hide a directory")
def test_names_every_package_that_is_missing(bare_path: str) -> None:
    done = run_as_ordinary_user(bare_path, before="mount -t tmpfs none /usr/lib/postgresql &&")
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip("this machine lets nobody hide a directory")
    assert done.returncode == 1
    assert re.fullmatch(INSTALL.format(packages="postgresql rabbitmq-server"), done.stderr.splitlines()[-1])


@needs_system_python
def test_servers_that_settings_name_need_no_package(bare_path: str) -> None:
    done = run_as_ordinary_user(
        bare_path, WINDLASS_DATABASE_URL="postgresql://elsewhere/db", WINDLASS_AMQP_URL="amqp://elsewhere"
    )
    assert "postgresql" not in done.stderr
    assert "rabbitmq" not in done.stderr


def test_the_newest_complete_postgres_is_taken(tmp_path: Path) -> None:
    for version, programs in {
        "9": ("initdb", "postgres", "psql"),
        "15": ("initdb", "postgres", "psql"),
        "16": ("initdb", "postgres", "psql"),
        "17": ("psql",),
        "extras": ("initdb", "postgres", "psql"),
    }.items():
        for program in programs:
            (tmp_path / version / "bin").mkdir(parents=True, exist_ok=True)
            (tmp_path / version / "bin" / program).touch()
    assert find_postgres(tmp_path) == tmp_path / "16" / "bin"
    assert find_postgres(tmp_path, major="15") == tmp_path / "15" / "bin"
    assert find_postgres(tmp_path, major="14") is None
    assert find_postgres(tmp_path / "nowhere") is None


def test_packaged_services_stay_off_while_packages_are_installed(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    with packaged_services_stay_off(policy):
        assert subprocess.run([policy, "rabbitmq-server", "start"], check=False).returncode == 101
    assert not policy.exists()

    def be_interrupted() -> None:
        with packaged_services_stay_off(policy):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        be_interrupted()
    assert not policy.exists()


def test_an_administrators_own_policy_stays(tmp_path: Path) -> None:
    policy = tmp_path / "policy-rc.d"
    policy.write_text("#!/bin/sh\nexit 104\n")
    with packaged_services_stay_off(policy):
        assert "104" in policy.read_text()
    assert "104" in policy.read_text()
