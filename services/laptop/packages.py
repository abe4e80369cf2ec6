"""Sees to it that this machine has Python, Postgres and RabbitMQ, and a browser for who tests the page, before any
virtual environment exists."""

# Run by the system's Python as `python3 services/laptop/packages.py`: the standard library only, and no syntax that is
# newer than the versions which it turns away.
from __future__ import annotations

import contextlib
import importlib.util
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

OLDEST_PYTHON = (3, 11)
POSTGRES_VERSIONS = Path("/usr/lib/postgresql")
RABBITMQ_SERVER = Path("/usr/lib/rabbitmq/bin/rabbitmq-server")
POLICY = Path("/usr/sbin/policy-rc.d")
CLUSTER_DEFAULTS = Path("/etc/postgresql-common/createcluster.conf")
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FOR_A_BROWSER = ["chromium", "fonts-dejavu-core", "libatomic1"]
"""The last is what the program that drives it needs, and a small Debian does not have."""
"""A browser that is installed without what it recommends has no letters."""
INSTALL = ("apt-get", "install", "--yes", "--no-install-recommends")


class RabbitmqPrograms(NamedTuple):
    server: Path
    epmd: Path
    erl: Path


def find_postgres(versions: Path = POSTGRES_VERSIONS, *, major: str | None = None) -> Path | None:
    """The program directory of the newest installed Postgres server, or of the given major version.

    A `postgres` somewhere on the PATH is not trusted: it may be a client or a wrapper without `initdb`.
    """
    complete = [
        home / "bin"
        for home in versions.glob("*")
        if home.name.isdigit()
        and major in (None, home.name)
        and all((home / "bin" / program).exists() for program in ("initdb", "postgres", "psql"))
    ]
    return max(complete, key=lambda programs: int(programs.parent.name), default=None)


def find_rabbitmq(server: Path = RABBITMQ_SERVER) -> RabbitmqPrograms | None:
    """RabbitMQ's own start script and Erlang; Debian's wrapper in /usr/sbin would change the user."""
    epmd, erl = shutil.which("epmd"), shutil.which("erl")
    if epmd and erl and server.exists():
        return RabbitmqPrograms(server, Path(epmd), Path(erl))
    return None


def find_browser() -> Path | None:
    """Chromium, by the names that it has in distributions."""
    found = [Path(path) for path in map(shutil.which, BROWSERS) if path]
    return found[0] if found else None


def missing_packages(environment: Mapping[str, str], *, browser: bool = False) -> list[str]:
    """The distribution's packages that are still to be installed; a browser is all that is asked for where it is."""
    if browser:
        return [] if find_browser() else FOR_A_BROWSER
    missing = []
    if not environment.get("WINDLASS_DATABASE_URL") and not find_postgres():
        missing.append("postgresql")
    if not environment.get("WINDLASS_AMQP_URL") and not find_rabbitmq():
        missing.append("rabbitmq-server")
    # Debian's python3 comes without ensurepip, and without it `python3 -m venv` fails half-way.
    if not all(importlib.util.find_spec(module) for module in ("venv", "ensurepip")):
        missing.append("python3-venv")
    return missing


def docker_answers(seconds: float = 3) -> bool:
    """Whether a Docker engine, not only its client, is there."""
    try:
        command = ["docker", "info", "--format", "{{.ServerVersion}}"]
        found = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return found.returncode == 0 and bool(found.stdout.strip())


def say(text: str) -> None:
    print(f"windlass: {text}", file=sys.stderr, flush=True)


@contextlib.contextmanager
def packaged_services_stay_off(policy: Path = POLICY) -> Iterator[None]:
    """Tells invoke-rc.d to start nothing for a while; an administrator's own policy is left as it is."""
    if policy.exists():
        yield
        return
    try:
        policy.write_text("#!/bin/sh\nexit 101\n")
        policy.chmod(0o755)
        yield
    finally:
        policy.unlink(missing_ok=True)


def install(packages: Sequence[str]) -> bool:
    """Installs as root and without questions; the output is shown only if it failed."""
    say(f"installing {' '.join(packages)} with apt-get (the packaged services are not started)")
    if "postgresql" in packages and not CLUSTER_DEFAULTS.parent.exists():
        # Debian would make and enable a cluster of its own, on the usual port, that nobody asked for.
        CLUSTER_DEFAULTS.parent.mkdir(parents=True)
        CLUSTER_DEFAULTS.write_text("create_main_cluster = false\n")
    # Another apt, such as a new machine's first automatic update, is waited for.
    options = ("--quiet", "--option", "DPkg::Lock::Timeout=120", "--option", "Dpkg::Use-Pty=0")
    with packaged_services_stay_off():
        run(["apt-get", "update", *options])
        run([*INSTALL, "--download-only", *options, *packages])
        code, output = run([*INSTALL, *options, *packages], may_be_abandoned=False)
    if code != 0:
        sys.stderr.write(output)
        say(f"apt-get failed with exit code {code}")
        return False
    if "rabbitmq-server" in packages and shutil.which("systemctl"):
        # Enabled by its package, it would listen on every interface after the next boot.
        run(["systemctl", "disable", "rabbitmq-server.service", "epmd.socket", "epmd.service"])
    return True


def run(command: Sequence[str], *, may_be_abandoned: bool = True) -> tuple[int, str]:
    """Runs a command in a session of its own, where a Ctrl-C on the terminal does not reach it.

    Interrupted, one that may be abandoned is stopped; dpkg at work is not, or the next one would have to repair.
    """
    process = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
        start_new_session=True,
    )
    try:
        output, _ = process.communicate()
    except BaseException:
        if may_be_abandoned:
            os.killpg(process.pid, signal.SIGTERM)
        else:
            say("the installation is brought to its end first")
        on_stop_signals(signal.SIG_IGN)
        process.communicate()
        raise
    return process.returncode, output


def provide(environment: Mapping[str, str], *, browser: bool = False) -> int:
    """Installs what is missing where that is allowed, else says what to do; the exit code."""
    missing = missing_packages(environment, browser=browser)
    if not missing:
        return 0
    apt = shutil.which("apt-get")
    if apt and os.geteuid() == 0 and install(missing):
        missing = missing_packages(environment, browser=browser)
        if not missing:
            return 0
    if not browser and "python3-venv" not in missing and docker_answers():
        say(f"{' and '.join(missing)} not installed here: using Docker and deploy/compose.yaml")
        return 0
    say(f"{', '.join(missing)} missing on this machine; install with" + ("" if apt else " the likes of"))
    print("   ", line_to_install(missing), file=sys.stderr)
    return 1


def line_to_install(packages: Sequence[str]) -> str:
    """What a person types."""
    sudo = () if os.geteuid() == 0 else ("sudo",)
    return " ".join((*sudo, *INSTALL, *packages))


def stop_in_order(signum: int, _frame: object) -> None:
    """Turns a signal into an exception, so that the policy file is removed on the way out."""
    sys.exit(128 + signum)


def on_stop_signals(action: Callable[[int, object], None] | signal.Handlers) -> None:
    for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(signum, action)


def main() -> int:
    if sys.version_info < OLDEST_PYTHON:
        wanted, found = (".".join(map(str, version[:2])) for version in (OLDEST_PYTHON, sys.version_info))
        say(f"Python {wanted} or newer is needed and this is {found}: try `make PYTHON=python{wanted} …`")
        return 1
    on_stop_signals(stop_in_order)
    return provide(os.environ, browser=sys.argv[1:] == ["--browser"])


if __name__ == "__main__":
    sys.exit(main())
