"""Windlass beside Celery, Procrastinate, DBOS and bare Dramatiq: the same work, servers and cores, in turns."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from bench.figures import Figure, show
from bench.flow import HAND_OFFS, TASK_SECONDS
from bench.peers import hand_off, starts
from bench.peers.hand_off import HandOff
from bench.peers.line_up import ALL, DRAMATIQ, DURABLE
from bench.peers.recoveries import PATIENCE_SECONDS, WITH_KEEPER, all_killed
from bench.peers.running import package_versions, prepare
from bench.peers.starts import SAMPLES, Latency
from bench.peers.throughput import MORE, Drain, Throughput, Trials
from tests.support.servers.private_servers import Servers, throw_away_servers

TASKS = int(os.environ.get("TASKS", "4500"))
"""Enough of them that starting up counts for little, for everybody. Settings are tried with as many as are counted:
what is best for a short queue need not be for a long one."""
ROUNDS = int(os.environ.get("ROUNDS", "3"))

OF_BARE = 0.7
OF_THE_BEST_PEER = 4
HAND_OFF_SECONDS = 0.020

WHO_BRINGS_IT_BACK = {
    "Windlass": "its guardian proves that nothing is left of it; the next worker takes over what it had",
    f"Windlass{WITH_KEEPER}": "both are started again at once; the new worker proves that nothing of the old is left",
    "Celery": "acks_late and reject_on_worker_lost: the main process gives the message back",
    f"Celery{WITH_KEEPER}": "RabbitMQ gives the message to the next worker, started again at once",
    "Procrastinate": "the application's own periodic task, here every minute, finds jobs without a heartbeat for 30 s",
    "DBOS": "the same executor, started again at once, recovers what it had; elsewhere its Conductor would",
    "bare Dramatiq": "RabbitMQ gives the message to the next worker, started again at once",
}


def versions() -> Mapping[str, str]:
    return {entrant.name: package_versions(entrant) for entrant in DURABLE}


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        for entrant in ALL:
            prepare(entrant, servers)
        return [*throughput(servers, directory), *latencies(servers, directory), *waits(servers, directory)]


def throughput(servers: Servers, directory: Path) -> list[Figure]:
    drains = Throughput(servers, directory)
    trials = drains.trials(TASKS)
    chosen = {name: max(rates, key=rates.__getitem__) for name, rates in trials.items()}
    found = drains.rounds(ROUNDS, TASKS, chosen)
    bare, own = found[DRAMATIQ.name], found["Windlass"]
    best = max(DURABLE, key=lambda entrant: found[entrant.name].drained)
    peer = found[best.name]
    return [
        _drained(DRAMATIQ.name, chosen[DRAMATIQ.name], bare, f"the ceiling: {DRAMATIQ.durable}"),
        _drained("Windlass", chosen["Windlass"], own, "every step and its event a committed row"),
        *(_drained(entrant.name, chosen[entrant.name], found[entrant.name], entrant.durable) for entrant in DURABLE),
        *(_tried(name, rates) for name, rates in trials.items()),
        Figure(
            "Windlass against bare Dramatiq",
            f"{own.drained / bare.drained:.2f} x",
            f">= {OF_BARE} x",
            {"ratio": own.drained / bare.drained},
            reached=own.drained >= OF_BARE * bare.drained,
        ),
        Figure(
            f"Windlass against the best durable peer, {best.name}",
            f"{own.drained / peer.drained:.1f} x",
            f">= {OF_THE_BEST_PEER} x",
            {"ratio": own.drained / peer.drained},
            reached=own.drained >= OF_THE_BEST_PEER * peer.drained,
        ),
    ]


def _drained(name: str, setting: str, drain: Drain, durable: str) -> Figure:
    return Figure(
        f"{TASKS} no-ops drained, {name} ({setting})",
        f"{drain.drained:.0f} tasks/s; put in at {drain.submitted:.0f}/s",
        durable,
        {"tasks_per_second": drain.drained, "submits_per_second": drain.submitted},
        label=name,
    )


def _tried(name: str, rates: Trials) -> Figure:
    text = "; ".join(f"{setting}: {rate:.0f}/s" for setting, rate in rates.items())
    numbers = {f"{setting}, tasks_per_second": rate for setting, rate in rates.items()}
    return Figure(
        f"settings tried with {TASKS * MORE.get(name, 1)} no-ops, {name}", text, "the best one ran above", numbers
    )


def latencies(servers: Servers, directory: Path) -> list[Figure]:
    found = [_latency("Windlass", "over its HTTP API", starts.of_windlass(servers, directory))]
    for entrant in ALL:
        for number, setting in enumerate(entrant.idle_settings):
            latency = starts.of_a_peer(entrant, setting, servers, directory, f"{entrant.system}_starts_{number}")
            # Where two settings ran, what tells them apart is the last thing that is said about each.
            label = f"{entrant.name}, {setting.rsplit(', ', 1)[-1]}" if len(entrant.idle_settings) > 1 else ""
            found.append(_latency(entrant.name, setting, latency, label))
    return found


def _latency(name: str, setting: str, latency: Latency, label: str = "") -> Figure:
    return Figure(
        f"submit to start, idle, {name} ({setting})",
        f"{latency.p50 * 1000:.1f} ms median, {latency.p99 * 1000:.1f} ms p99",
        f"{SAMPLES} samples, one clock",
        {"start_p50_ms": latency.p50 * 1000, "start_p99_ms": latency.p99 * 1000},
        label=label or name,
    )


def waits(servers: Servers, directory: Path) -> list[Figure]:
    """What takes its time without taking cores: the limiters run while killed tasks wait to be taken up again."""
    own = hand_off.of_windlass(servers, directory)
    with all_killed(servers, directory) as killed:
        by_default, in_short = hand_off.of_the_limiters(servers)
        found = [_back(name, each.back_after()) for name, each in sorted(killed.items())]
    return [
        _hand_off("Windlass", own, f"< {HAND_OFF_SECONDS * 1000:.0f} ms", reached=own.gap < HAND_OFF_SECONDS),
        _hand_off("Dramatiq's ConcurrentRateLimiter", by_default, "its Retries' own backoff, from 15 s"),
        _hand_off("the same with a short backoff", in_short, "0.2 to 1 s by hand, retries without end"),
        *found,
    ]


def _hand_off(name: str, found: HandOff, aim: str, *, reached: bool | None = None) -> Figure:
    return Figure(
        f"limit 1, {TASK_SECONDS * 1000:.0f} ms tasks, {name}",
        f"slot held {found.share:.1%} of the time, median gap {found.gap * 1000:.1f} ms, {found.tasks} of {HAND_OFFS}",
        aim,
        {"share": found.share, "hand_off_p50_ms": found.gap * 1000},
        reached=reached,
        label=name,
    )


def _back(name: str, seconds: float | None) -> Figure:
    return Figure(
        f"SIGKILL of the worker to running again, {name}",
        f"> {PATIENCE_SECONDS} s" if seconds is None else f"{seconds:.1f} s",
        WHO_BRINGS_IT_BACK[name],
        {} if seconds is None else {"killed_to_running_seconds": seconds},
        label=name,
    )


def main() -> None:
    for name, found in versions().items():
        print(f"{name}: {found}")
    show(figures())


if __name__ == "__main__":
    main()
