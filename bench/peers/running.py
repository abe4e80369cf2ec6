"""A peer at work: its programs in the peers' environment, on a database of its own, ended whatever happens."""

import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers.line_up import Entrant, Workers
from tests.support.installation import leash
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import descendants

PROJECT = Path(__file__).parents[2]
DRAIN_SECONDS = 300


class RunningPeer:
    """One run of one peer; the tables come as a copy of those that the first run made."""

    def __init__(self, entrant: Entrant, servers: Servers, directory: Path, run: str) -> None:
        self.entrant = entrant
        self.directory = directory
        self.amqp_url = servers.amqp_url
        self.url = new_database(servers, f"{entrant.system}_{run}", template=f"{entrant.system}_tables")
        self.workers: list[subprocess.Popen[bytes]] = []

    def fill(self, number: int) -> float:
        return float(self._ask("fill", str(number)))

    def _ask(self, action: str, *values: str) -> str:
        return subprocess.run(
            self._command(action, *values), cwd=PROJECT, check=True, stdout=subprocess.PIPE, text=True
        ).stdout

    def sample(self, notes: Path, number: int) -> dict[int, float]:
        """When each of so many tasks was submitted, one by one."""
        lines = self._ask("sample", str(notes), str(number)).splitlines()
        return {int(key): float(at) for key, at in map(str.split, lines)}

    def hold(self, notes: Path) -> None:
        self._ask("hold", str(notes))

    def _command(self, action: str, *values: str) -> list[str]:
        return [self.entrant.python, "-m", "bench.peers", self.entrant.system, action, self.url, self.amqp_url, *values]

    @contextmanager
    def working(self, workers: Workers) -> Iterator[None]:
        for options in workers:
            self.start(*options)
        try:
            yield
        finally:
            self.stop()

    def start(self, *options: str) -> None:
        with (self.directory / f"{self.entrant.system}.log").open("ab") as log:
            command = [*leash(), *self._command("work", *options)]
            self.workers.append(subprocess.Popen(command, cwd=PROJECT, stdout=log, stderr=log))

    def stop(self) -> None:
        for worker in self.workers:
            for each in descendants(worker.pid):
                each.send(signal.SIGKILL)
            worker.kill()
            worker.wait()
        self.workers.clear()

    def drained(self, number: int) -> float:
        """Tasks per second by the peer's own rows, once every one of them is done."""
        wait_until(
            "drained", lambda: ask(self.url, self.entrant.done)[0][0] == number, seconds=DRAIN_SECONDS, every=0.5
        )
        return float(ask(self.url, self.entrant.rate)[0][0])


def prepare(entrant: Entrant, servers: Servers) -> None:
    url = new_database(servers, f"{entrant.system}_tables")
    command = [entrant.python, "-m", "bench.peers", entrant.system, "prepare", url, servers.amqp_url]
    subprocess.run(command, cwd=PROJECT, check=True, stdout=subprocess.DEVNULL)


def package_versions(entrant: Entrant) -> str:
    assert Path(entrant.python).exists(), f"{entrant.name} is not installed: run `make .venv/.peers`"
    program = "import sys; from importlib.metadata import version; print(*map(version, sys.argv[1:]))"
    found = subprocess.run(
        [entrant.python, "-c", program, *entrant.packages], check=True, stdout=subprocess.PIPE, text=True
    ).stdout.split()
    return ", ".join(f"{package} {version}" for package, version in zip(entrant.packages, found, strict=True))


def new_database(servers: Servers, name: str, template: str = "template1") -> str:
    execute(servers.database_url, f"CREATE DATABASE {name} TEMPLATE {template}")
    return f"{servers.database_url.rsplit('/', 1)[0]}/{name}"
