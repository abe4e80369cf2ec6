"""From SIGKILL of the process that runs a task to the task running again, with each system's defaults."""

import os
import signal
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx

from bench.deployment import a_windlass, new_database
from bench.peers.__main__ import HOLD_SECONDS
from bench.peers.line_up import CELERY, DBOS, DRAMATIQ, PROCRASTINATE, Entrant
from bench.peers.notes import read
from bench.peers.running import RunningPeer
from tests.conftest import a_virtual_host
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until

PATIENCE_SECONDS = 120
WITH_KEEPER = ", and of what keeps it"
"""Windlass' guardian, Celery's main process. The other systems' workers have nothing above them."""


@dataclass(frozen=True)
class Killed:
    """A task whose worker has been killed; where its starts are noted, and since when it waits."""

    notes: Path
    at: float

    def back_after(self) -> float | None:
        """None when it did not run again in the time that anybody would wait."""
        left = self.at + PATIENCE_SECONDS - time.time()
        try:
            again = wait_until("running again", lambda: read(self.notes)[1:], seconds=left, every=0.2)
        except AssertionError:
            return None
        return again[0].at - self.at


@contextmanager
def all_killed(servers: Servers, directory: Path) -> Iterator[Mapping[str, Killed]]:
    """Those that take long first: they wait while the others are killed."""
    with ExitStack() as stack:
        killed = {PROCRASTINATE.name: _peer(stack, PROCRASTINATE, "1 process, 32 at a time", servers, directory)}
        killed["Windlass"] = _windlass(stack, servers, directory)
        killed[f"Windlass{WITH_KEEPER}"] = _windlass(stack, servers, directory, with_keeper=True)
        for entrant, setting in (
            (DBOS, "1 executor, no limit, polling every second"),
            (CELERY, "prefork, 2 processes"),
            (DRAMATIQ, "1 process, 8 threads"),
        ):
            killed[entrant.name] = _peer(stack, entrant, setting, servers, directory)
        killed[f"Celery{WITH_KEEPER}"] = _peer(
            stack, CELERY, "prefork, 2 processes", servers, directory, with_keeper=True
        )
        yield killed


def _peer(
    stack: ExitStack, entrant: Entrant, setting: str, servers: Servers, directory: Path, *, with_keeper: bool = False
) -> Killed:
    """What a service manager would do is done here: a program that has ended is started again at once."""
    run = "killed_whole" if with_keeper else "killed"
    notes = directory / f"{entrant.system}.{run}"
    peer = RunningPeer(entrant, servers, directory, run)
    stack.enter_context(peer.working(entrant.settings[setting]))
    peer.hold(notes)
    victim = wait_until("started", lambda: read(notes), seconds=60)[0].pid
    killed = Killed(notes, time.time())
    os.kill(victim, signal.SIGKILL)
    if with_keeper or victim == peer.workers[0].pid:
        peer.stop()
        peer.start(*entrant.settings[setting][0])
    return killed


def _windlass(stack: ExitStack, servers: Servers, directory: Path, *, with_keeper: bool = False) -> Killed:
    """On a virtual host of its own: two of them at once would answer each other's doorbells."""
    assert servers.management_url
    management = stack.enter_context(httpx.Client(base_url=servers.management_url, trust_env=False))
    servers = replace(servers, amqp_url=stack.enter_context(a_virtual_host(servers, management)))
    run = "windlass_killed_whole" if with_keeper else "windlass_killed"
    notes = directory / f"{run}.notes"
    windlass = stack.enter_context(a_windlass(new_database(servers, run), servers, directory))
    windlass.api, windlass.dispatcher, windlass.janitor, windlass.orchestrator = map(
        windlass.start, ("api", "dispatcher", "janitor", "orchestrator")
    )
    windlass.actors = windlass.start("bench.peers.noting_worker")
    windlass.wait_until_healthy()
    windlass.client.submit(payload={"seconds": HOLD_SECONDS, "result": {"notes": str(notes), "key": 0}})
    victim = wait_until("started", lambda: read(notes), seconds=60)[0].pid
    killed = Killed(notes, time.time())
    if with_keeper:
        windlass.actors.kill()
    os.kill(victim, signal.SIGKILL)
    if with_keeper:
        windlass.actors.wait()
        windlass.start("bench.peers.noting_worker")
    return killed
