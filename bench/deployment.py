"""A Windlass to measure: a database of its own, the settings of a deployment, and what its processes take."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import httpx

from tests.support.installation import Windlass, answers
from tests.support.servers.databases import execute, migrate
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until
from windlass.shared.process.procfs import Stat, descendants, fair_share_bytes, stat_of

THREADS = int(os.environ.get("THREADS", "32"))
LEASE_SECONDS = 30
START_SECONDS = 120
DEFAULTS = {
    "WINDLASS_LEASE_SECONDS": str(LEASE_SECONDS),
    "WINDLASS_HEARTBEAT_SECONDS": "5",
    "WINDLASS_STOP_GRACE_SECONDS": "5",
    "WINDLASS_LEASE_MARGIN_SECONDS": "2",
    "WINDLASS_SAFETY_POLL_SECONDS": "15",
    "WINDLASS_DRAIN_SECONDS": "20",
    "WINDLASS_ACTOR_THREADS": str(THREADS),
}
"""Those of a deployment, not the short leases of the tests."""


def new_database(servers: Servers, name: str) -> str:
    execute(servers.database_url, f"CREATE DATABASE {name}")
    url = servers.database_url.rsplit("/", 1)[0] + f"/{name}"
    migrate(url)
    return url


def on_a_virtual_host(servers: Servers, name: str) -> Servers:
    """The same servers with queues of its own, so that several Windlasses can share them."""
    assert servers.management_url
    parts = urlsplit(servers.amqp_url)
    with httpx.Client(base_url=servers.management_url, trust_env=False) as management:
        management.put(f"/api/vhosts/{name}").raise_for_status()
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        management.put(f"/api/permissions/{name}/{parts.username}", json=everything).raise_for_status()
    return replace(servers, amqp_url=urlunsplit(parts._replace(path=f"/{name}")))


@contextmanager
def a_windlass(url: str, servers: Servers, directory: Path, **settings: str) -> Iterator[Windlass]:
    """Nothing of it runs yet; whatever is started ends with it."""
    windlass = Windlass(url, servers.amqp_url, directory, **{**DEFAULTS, **settings})
    windlass.may_fork = False
    try:
        yield windlass
    finally:
        windlass.stop()


def start_all(windlass: Windlass, *, actors: str = "actors") -> None:
    """With more patience than a test has: the machine may be busy. `actors` may be a module that becomes the same."""
    windlass.api, windlass.dispatcher, windlass.actors, windlass.janitor, windlass.orchestrator = map(
        windlass.start, ("api", "dispatcher", actors, "janitor", "orchestrator")
    )
    wait_until(
        "healthy", lambda: answers(windlass.client) and windlass.health() == "healthy", seconds=START_SECONDS, every=0.2
    )


def cpu_seconds(pid: int) -> float:
    return _stat(pid).cpu_seconds


def cpu_seconds_with_children(pid: int) -> float:
    """Of a process, of those below it that live, and of those that it has seen end."""
    stat = _stat(pid)
    return stat.cpu_seconds + stat.waited_cpu_seconds + cpu_of(process.pid for process in descendants(pid))


def _stat(pid: int) -> Stat:
    if (stat := stat_of(pid)) is None:
        raise ProcessLookupError(pid)
    return stat


def precise_cpu_seconds(pid: int) -> float:
    """As the scheduler counts: to the nanosecond, where the other is counted in hundredths of a second."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def cpu_of(pids: Iterable[int]) -> float:
    spent = 0.0
    for pid in pids:
        try:
            spent += cpu_seconds(pid)
        except ProcessLookupError:  # it ended meanwhile, and had done little
            continue
    return spent


def proportional_bytes(pid: int) -> int:
    """What the process adds to the memory in use: pages that others share are divided among them. Of guardians and
    workers only root is told that: for others, pages that they share count in full."""
    return fair_share_bytes(pid)
