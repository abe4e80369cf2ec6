"""The engine's figures, each a ratio against bare Dramatiq in the same run on the same servers."""

import os
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.deployment import a_windlass, new_database, start_all
from bench.drains import Stages, drain_bare, drain_windlass, fill_bare, fill_windlass
from bench.figures import Figure
from bench.peers import starts
from bench.peers.line_up import DRAMATIQ
from bench.peers.running import prepare
from bench.peers.starts import SAMPLES, Latency
from tests.support.installation import Windlass
from tests.support.servers.private_servers import Servers, throw_away_servers

TASKS = int(os.environ.get("TASKS", "12000"))
ROUNDS = int(os.environ.get("ROUNDS", "5"))
THREADS = int(os.environ.get("THREADS", "256"))
"""Of each worker. What ours end goes in calls as large as they are many; those of bare Dramatiq gain nothing by it."""
BARE_THREADS = (8, 32, 64)
"""In each process; the best of them is the ceiling."""
OF_BARE: Mapping[int, float] = {1: 0.5, 2: 0.7}
"""What is aimed at, by the number of processes that both have."""
NUMBERS = {1: "one process", 2: "two processes"}
START_OF_BARE = 5
RECOVERY_SECONDS = 5
"""Whoever dies: a lease is 30 s, and nobody shall wait for it."""


@dataclass(frozen=True)
class Round:
    """Tasks per second of both, one right after the other, and what ours took of each part of the way."""

    bare: float
    ours: float
    stages: Stages

    @property
    def ratio(self) -> float:
        return self.ours / self.bare


class Drains:
    """Bare Dramatiq and Windlass with as many processes each, in turns, so that a busy moment hits both alike."""

    def __init__(self, servers: Servers, directory: Path) -> None:
        self.servers = servers
        self.directory = directory
        self.databases = 0

    def best_threads(self, processes: int) -> int:
        """With how many threads in each process bare Dramatiq is fastest."""
        rates = {threads: self.bare(processes, threads) for threads in BARE_THREADS}
        return max(rates, key=rates.__getitem__)

    def bare(self, processes: int, threads: int) -> float:
        fill_bare(self.servers, TASKS)
        return drain_bare(self.servers, TASKS, [threads] * processes)

    def round(self, processes: int, bare_threads: int) -> Round:
        bare = self.bare(processes, bare_threads)
        self.databases += 1
        url = new_database(self.servers, f"engine_{self.databases}")
        with a_windlass(url, self.servers, self.directory, WINDLASS_ACTOR_THREADS=str(THREADS)) as windlass:
            fill_windlass(windlass, TASKS)
            ours, stages = drain_windlass(windlass, self.servers, TASKS, workers=processes)
        return Round(bare, ours, stages)


def drained(servers: Servers, directory: Path) -> list[Figure]:
    drains = Drains(servers, directory)
    threads = {processes: drains.best_threads(processes) for processes in OF_BARE}
    rounds: dict[int, list[Round]] = {processes: [] for processes in OF_BARE}
    for _ in range(ROUNDS):
        for processes, each in rounds.items():
            each.append(drains.round(processes, threads[processes]))
    return [
        figure
        for processes, each in rounds.items()
        for figure in against_bare(processes, threads[processes], each, OF_BARE[processes])
    ]


def against_bare(processes: int, bare_threads: int, rounds: Sequence[Round], aim: float) -> list[Figure]:
    """All medians are of the same rounds, and the ratio's is of each round's own. Every round is kept: who doubts the
    median can look at what it is of."""
    bare = statistics.median(each.bare for each in rounds)
    ours = statistics.median(each.ours for each in rounds)
    ratios = [each.ratio for each in rounds]
    least, ratio, most = min(ratios), statistics.median(ratios), max(ratios)
    stages = {name: statistics.median(each.stages[name] for each in rounds) for name in rounds[0].stages}
    with_them = NUMBERS[processes]
    return [
        Figure(
            f"bare Dramatiq, no state, {with_them}, {bare_threads} threads, the best of {BARE_THREADS}",
            f"{bare:.0f} tasks/s, the median of {len(rounds)} rounds",
            "the ceiling",
            {"tasks_per_second": bare, **by_round("tasks_per_second", [each.bare for each in rounds])},
            label=f"bare Dramatiq, {with_them}",
        ),
        Figure(
            f"Windlass, every step durable, {with_them}, {THREADS} threads",
            f"{ours:.0f} tasks/s, the median of the same rounds; each against its own bare: "
            f"least {least:.2f}, median {ratio:.2f}, most {most:.2f} x",
            f">= {aim} x, median",
            {
                "tasks_per_second": ours,
                "ratio": ratio,
                "least_ratio": least,
                "most_ratio": most,
                **by_round("tasks_per_second", [each.ours for each in rounds]),
                **by_round("ratio", ratios),
            },
            reached=ratio >= aim,
            label=f"Windlass, {with_them}",
        ),
        Figure(
            "CPU per task by stage" if processes == 1 else f"CPU per task by stage, {with_them}",
            ", ".join(f"{name} {milliseconds:.2f} ms" for name, milliseconds in stages.items()),
            f"{sum(stages.values()):.2f} ms in all, {os.cpu_count()} cores",
            {f"{name}_ms": milliseconds for name, milliseconds in stages.items()},
        ),
    ]


def by_round(name: str, values: Sequence[float]) -> dict[str, float]:
    return {f"round_{number}_{name}": value for number, value in enumerate(values, 1)}


def started(servers: Servers, directory: Path) -> list[Figure]:
    """From outside for both: from before the call to the first line of the actor, by one clock."""
    prepare(DRAMATIQ, servers)
    (setting,) = DRAMATIQ.idle_settings
    bare = starts.of_a_peer(DRAMATIQ, setting, servers, directory, "dramatiq_starts")
    return start_figures(bare, starts.of_windlass(servers, directory))


def start_figures(bare: Latency, ours: Latency) -> list[Figure]:
    ratio = ours.p50 / bare.p50
    return [
        Figure(
            "bare Dramatiq, from before send() to the first line of the actor",
            f"{bare.p50 * 1000:.1f} ms median, {bare.p99 * 1000:.1f} ms p99 of {SAMPLES}",
            "the floor",
            {"p50_ms": bare.p50 * 1000, "p99_ms": bare.p99 * 1000},
            label="bare Dramatiq",
        ),
        Figure(
            "Windlass, from before the HTTP request to the first line of the actor",
            f"{ours.p50 * 1000:.1f} ms median, {ours.p99 * 1000:.1f} ms p99 = {ratio:.1f} x bare",
            f"<= {START_OF_BARE} x",
            {"p50_ms": ours.p50 * 1000, "p99_ms": ours.p99 * 1000, "ratio": ratio},
            reached=ratio <= START_OF_BARE,
            label="Windlass",
        ),
    ]


def recovery(windlass: Windlass) -> tuple[float, float]:
    """Seconds from SIGKILL to running again: of the worker alone, and of worker and guardian together."""
    client = windlass.client
    figures = []
    for with_guardian in (False, True):
        task_id = client.submit(payload={"seconds": 1})["task_id"]
        client.wait_until(task_id, "running")
        pid = client.workers()[0]["pid"]
        killed_at = time.monotonic()
        if with_guardian:
            windlass.actors.kill()
        windlass.kill(pid)
        if with_guardian:
            windlass.actors = windlass.start("actors")
        client.wait_until_attempt(task_id, 2)
        figures.append(time.monotonic() - killed_at)
        client.finished(task_id)
    return figures[0], figures[1]


def recovered(servers: Servers, directory: Path) -> list[Figure]:
    with a_windlass(new_database(servers, "engine_recovery"), servers, directory) as windlass:
        start_all(windlass)
        return recovery_figures(*recovery(windlass))


def recovery_figures(worker_back: float, all_back: float) -> list[Figure]:
    return [
        Figure(
            f"SIGKILL of {whom} to running again",
            f"{seconds:.1f} s",
            f"< {RECOVERY_SECONDS} s",
            {"seconds": seconds},
            reached=seconds < RECOVERY_SECONDS,
        )
        for whom, seconds in (("a worker", worker_back), ("worker and guardian", all_back))
    ]


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        return [*drained(servers, directory), *started(servers, directory), *recovered(servers, directory)]
