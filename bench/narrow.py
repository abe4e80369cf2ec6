"""One and three at a time: what a provider with few slots gets done, what each task takes, and how long a slot is idle.

Here nothing can be gathered: a call carries as many tasks as there are slots.
"""

import os
import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.deployment import a_windlass, new_database, start_all
from bench.drains import DRAIN_SECONDS, Stages, stages_of
from bench.figures import Figure
from bench.flow import HAND_OFFS, HELD_AIM, PROVIDERS, TASK_SECONDS, Flow
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers, throw_away_servers
from tests.support.waiting import wait_until

TASKS = int(os.environ.get("NARROW", "1000"))
ROUNDS = int(os.environ.get("ROUNDS", "3"))
CPU_AIMS = {1: None, 3: 1.5}
"""Milliseconds a task in all, by the limit."""
LONG_POLL_SECONDS = 40

DRAINED = """
SELECT count(*) AS number, extract(epoch FROM max(completed_at) - min(started_at))::float AS seconds
FROM tasks WHERE provider = $1 AND status = 'completed' AND created_at >= $2
"""


@dataclass(frozen=True)
class Drain:
    """Of no-ops under one limit: how many in a second, and what each took of every part of the way."""

    per_second: float
    stages: Stages


class Narrow:
    """A running Windlass with a provider that gets few slots."""

    def __init__(self, windlass: Windlass, servers: Servers) -> None:
        self.windlass = windlass
        self.servers = servers
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]

    def drain(self, limit: int) -> Drain:
        """They are put in beforehand. To wait for the end of the last takes no CPU, to ask does."""
        client = self.windlass.client
        client.change_provider("stormy", limit=0)
        (began,) = ask(self.url, "SELECT clock_timestamp() AS at")
        ids: list[str] = []
        for begin in range(0, TASKS, 1000):
            ids += client.submit_many([{"provider": "stormy"}] * min(1000, TASKS - begin))
        with stages_of(self.windlass, self.servers, TASKS) as stages:
            client.change_provider("stormy", limit=limit)
            wait_until(
                f"drained at limit {limit}",
                lambda: client.get(ids[-1], wait=LONG_POLL_SECONDS)["status"] == "completed",
                seconds=DRAIN_SECONDS,
            )
        wait_until(
            "the last of them", lambda: ask(self.url, DRAINED, "stormy", began["at"])[0]["number"] == TASKS, seconds=60
        )
        (row,) = ask(self.url, DRAINED, "stormy", began["at"])
        return Drain(TASKS / row["seconds"], stages)


def of_a_limit(limit: int, drains: Sequence[Drain]) -> list[Figure]:
    per_second = statistics.median(each.per_second for each in drains)
    stages = {name: statistics.median(each.stages[name] for each in drains) for name in drains[0].stages}
    total = statistics.median(sum(each.stages.values()) for each in drains)
    aim = CPU_AIMS[limit]
    by_stage = ", ".join(f"{name} {milliseconds:.2f}" for name, milliseconds in stages.items())
    return [
        Figure(
            f"no-ops at limit {limit}",
            f"{per_second:.0f} tasks/s",
            "",
            {"tasks_per_second": per_second},
            label=f"limit {limit}",
        ),
        Figure(
            f"CPU of a task at limit {limit}",
            f"{total:.2f} ms ({by_stage})",
            "" if aim is None else f"<= {aim} ms",
            {"ms": total, **{f"{name}_ms": milliseconds for name, milliseconds in stages.items()}},
            reached=None if aim is None else total <= aim,
        ),
    ]


def of_the_slot(share: float, gap: float) -> list[Figure]:
    return [
        Figure(
            f"limit 1, {HAND_OFFS} tasks of {TASK_SECONDS * 1000:.0f} ms, slot held",
            f"{share:.1%} of the time, {gap * 1000:.1f} ms median from one to the next",
            f">= {HELD_AIM:.0%}",
            {"share": share, "hand_off_p50_ms": gap * 1000},
            reached=share >= HELD_AIM,
        )
    ]


def measure(windlass: Windlass, servers: Servers) -> list[Figure]:
    narrow = Narrow(windlass, servers)
    wait_until("a worker", windlass.client.workers)
    drains: dict[int, list[Drain]] = {limit: [] for limit in CPU_AIMS}
    for _ in range(ROUNDS):
        for limit, each in drains.items():
            each.append(narrow.drain(limit))
    share, gap = Flow(windlass).never_idle()
    return [*(figure for limit, each in drains.items() for figure in of_a_limit(limit, each)), *of_the_slot(share, gap)]


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        config = Path(directory) / "windlass.toml"
        config.write_text(PROVIDERS)
        url = new_database(servers, "narrow")
        with a_windlass(url, servers, Path(directory), WINDLASS_CONFIG=str(config)) as windlass:
            start_all(windlass)
            return measure(windlass, servers)
