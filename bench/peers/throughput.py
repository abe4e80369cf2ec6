"""How many no-ops each system drains in a second with its durable state, and how fast they are put in."""

import statistics
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from bench.deployment import a_windlass, new_database
from bench.drains import drain_bare, drain_windlass, fill_bare, fill_windlass
from bench.peers.line_up import DRAMATIQ, DURABLE, WINDLASS_SETTINGS, Entrant, Workers
from bench.peers.running import RunningPeer
from tests.support.servers.private_servers import Servers

Trials = Mapping[str, float]
"""Tasks per second by the name of a setting."""

MORE = {DRAMATIQ.name: 2}
"""In a trial it would be done so soon that chance alone would choose: a ceiling chosen too low would flatter us."""


@dataclass(frozen=True)
class Drain:
    """One system's tasks per second, drained and put in."""

    drained: float
    submitted: float


class Throughput:
    """Every system with each of its settings, on a database of its own each time."""

    def __init__(self, servers: Servers, directory: Path) -> None:
        self.servers = servers
        self.directory = directory
        self.runs = 0
        self.systems: dict[str, dict[str, Callable[[int], Drain]]] = {
            "Windlass": {name: partial(self._windlass, workers) for name, workers in WINDLASS_SETTINGS.items()},
            DRAMATIQ.name: {name: partial(self._bare, workers) for name, workers in DRAMATIQ.settings.items()},
        }
        for entrant in DURABLE:
            self.systems[entrant.name] = {
                name: partial(self._peer, entrant, workers) for name, workers in entrant.settings.items()
            }

    def trials(self, tasks: int) -> dict[str, Trials]:
        """Once with each of the settings that make sense."""
        return {
            system: {setting: drain(tasks * MORE.get(system, 1)).drained for setting, drain in settings.items()}
            for system, settings in self.systems.items()
        }

    def rounds(self, number: int, tasks: int, chosen: Mapping[str, str]) -> dict[str, Drain]:
        """The medians of so many rounds, all in turns, so that a busy moment of the machine hits all alike."""
        found: dict[str, list[Drain]] = {system: [] for system in self.systems}
        for _ in range(number):
            for system, settings in self.systems.items():
                found[system].append(settings[chosen[system]](tasks))
        return {system: median(drains) for system, drains in found.items()}

    def _peer(self, entrant: Entrant, workers: Workers, tasks: int) -> Drain:
        peer = RunningPeer(entrant, self.servers, self.directory, self._run())
        seconds = peer.fill(tasks)
        with peer.working(workers):
            return Drain(peer.drained(tasks), tasks / seconds)

    def _windlass(self, workers: Workers, tasks: int) -> Drain:
        url = new_database(self.servers, f"windlass_{self._run()}")
        with a_windlass(url, self.servers, self.directory, WINDLASS_ACTOR_THREADS=workers[0][0]) as windlass:
            seconds = fill_windlass(windlass, tasks)
            drained, _ = drain_windlass(windlass, self.servers, tasks, workers=len(workers))
        return Drain(drained, tasks / seconds)

    def _bare(self, workers: Workers, tasks: int) -> Drain:
        seconds = fill_bare(self.servers, tasks)
        threads = [int(options[0]) for options in workers]
        return Drain(drain_bare(self.servers, tasks, threads), tasks / seconds)

    def _run(self) -> str:
        self.runs += 1
        return f"drain_{self.runs}"


def median(drains: list[Drain]) -> Drain:
    return Drain(
        statistics.median(drain.drained for drain in drains), statistics.median(drain.submitted for drain in drains)
    )
