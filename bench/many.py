"""A thousand tasks at once in one process, each on a thread, two thousand that hold none, and pictures that end
together: how soon all run, what they take, and how soon they stop, end or run again."""

import os
import signal
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from asyncpg import Record as Row

from bench import pictures
from bench.deployment import (
    a_windlass,
    cpu_seconds_with_children,
    new_database,
    proportional_bytes,
    start_all,
)
from bench.figures import Figure
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers, throw_away_servers
from tests.support.waiting import wait_until

MANY = int(os.environ.get("MANY", "1000"))
MANY_ASYNC = int(os.environ.get("MANY_ASYNC", "2000"))
MEGABYTE = 1024 * 1024
PATIENCE_SECONDS = 120
"""For each step: what takes longer has failed."""

SETTINGS = {"WINDLASS_ACTOR_THREADS": str(MANY), "WINDLASS_DRAIN_SECONDS": "0"}
"""Nobody waits for tasks of an hour to end by themselves."""
ASYNC_SETTINGS = {
    "WINDLASS_ASYNC_PLACES": str(MANY_ASYNC),
    "WINDLASS_QUEUES": "own",
    "WINDLASS_DRAIN_SECONDS": "0",
}
ASYNC_ACTOR = """
from windlass import AsyncContext, actor


@actor
async def waiting(seconds: float, *, context: AsyncContext) -> None:
    await context.sleep(seconds)
"""
ASYNC_TASK = {"actor": "waiting", "payload": {"seconds": 3600}, "timeout_seconds": 7200}
REPORT_SECONDS = 5
TASK = {"payload": {"seconds": 3600, "steps": 3600 // REPORT_SECONDS}, "timeout_seconds": 7200}

STEADY_SECONDS = float(os.environ.get("STEADY_SECONDS", "20"))
WORKER_SHARE, POSTGRES_SHARE = 0.10, 0.15
"""Of a core, while a thousand run and nothing else happens."""
ASYNC_WORKER_SHARE = 0.05
"""Of a core, while two thousand wait on one loop."""
OLDEST_HEARTBEAT_SECONDS = 10.0
"""Twice as old as a heartbeat may become; the lease is three times as long."""


OLDEST_HEARTBEAT = """
SELECT extract(epoch FROM clock_timestamp() - min(heartbeat_at))::float AS seconds FROM tasks WHERE status = 'running'
"""


@dataclass(frozen=True)
class Steady:
    """While all run: shares of a core, bytes of write-ahead log a second, and seconds since the oldest heartbeat."""

    worker: float
    postgres: float
    log_bytes: float
    heartbeat: float


class Crowd:
    """Very many long tasks in one worker, and what is done to them."""

    def __init__(self, windlass: Windlass, servers: Servers, task: Mapping[str, object], number: int) -> None:
        self.windlass = windlass
        self.servers = servers
        self.task = dict(task)
        self.number = number
        self.client = windlass.client
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]

    def worker(self) -> int:
        return int(wait_until("a worker", self.client.workers, seconds=PATIENCE_SECONDS)[0]["pid"])

    def start(self) -> float:
        """Seconds from the submit of all until the last one runs."""
        began = time.monotonic()
        for begin in range(0, self.number, 1000):
            self.client.submit_many([self.task] * min(1000, self.number - begin))
        self.wait_for(self.number, "running")
        return time.monotonic() - began

    def steadily(self, worker: int) -> Steady:
        pids = {"worker": worker, "Postgres": self.servers.postgres_pid}
        before = {name: cpu_seconds_with_children(pid) for name, pid in pids.items()}
        position = self._log_position()
        began, oldest = time.monotonic(), 0.0
        while (passed := time.monotonic() - began) < STEADY_SECONDS:
            (row,) = ask(self.url, OLDEST_HEARTBEAT)
            oldest = max(oldest, row["seconds"])
            time.sleep(1)
        spent = {name: (cpu_seconds_with_children(pid) - before[name]) / passed for name, pid in pids.items()}
        written = (self._log_position() - position) / passed
        return Steady(spent["worker"], spent["Postgres"], written, oldest)

    def _log_position(self) -> int:
        return int(ask(self.url, "SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::bigint")[0][0])

    def cancel_one(self) -> float:
        (chosen,) = ask(self.url, "SELECT task_id FROM tasks WHERE status = 'running' ORDER BY task_id LIMIT 1")
        began = time.monotonic()
        self.client.cancel(str(chosen["task_id"])).raise_for_status()
        self.wait_for(1, "cancelled")
        return time.monotonic() - began

    def kill(self) -> tuple[float, float]:
        """Seconds from SIGKILL to the first claim by the next worker, and from that one to the last."""
        (lost,) = ask(self.url, "SELECT clock_timestamp() AS at, count(*) FROM tasks WHERE status = 'running'")
        self.windlass.kill(self.worker())
        wait_until(
            "all run again",
            lambda: self._claims_since(lost["at"])["number"] >= lost["count"],
            seconds=PATIENCE_SECONDS,
            every=0.1,
        )
        claims = self._claims_since(lost["at"])
        return (claims["first"] - lost["at"]).total_seconds(), (claims["last"] - claims["first"]).total_seconds()

    def terminate(self) -> float:
        """Seconds from SIGTERM until everything is handed back and the processes are gone."""
        began = time.monotonic()
        self.windlass.actors.send_signal(signal.SIGTERM)
        self.windlass.actors.wait(PATIENCE_SECONDS)
        passed = time.monotonic() - began
        (left,) = ask(self.url, "SELECT count(*) FROM tasks WHERE status = 'running'")
        assert left[0] == 0, f"{left[0]} tasks still count as running"
        return passed

    def cancel_all(self) -> float:
        """Seconds from the request until the last of them has stopped."""
        self.windlass.start("actors")
        self.wait_for(self.number - 1, "running")
        began = time.monotonic()
        self.client.http.post(
            "/api/v1/tasks/bulk", json={"action": "cancel", "filter": {"status": ["running"]}}
        ).raise_for_status()
        self.wait_for(self.number, "cancelled")
        return time.monotonic() - began

    def wait_for(self, number: int, status: str) -> None:
        count = "SELECT count(*) FROM tasks WHERE status = $1"
        wait_until(
            f"{number} {status}",
            lambda: ask(self.url, count, status)[0][0] >= number,
            seconds=PATIENCE_SECONDS,
            every=0.1,
        )

    def _claims_since(self, moment: object) -> Row:
        (found,) = ask(
            self.url,
            "SELECT count(*) AS number, min(at) AS first, max(at) AS last FROM task_events"
            " WHERE type = 'claim' AND at > $1",
            moment,
        )
        return found


def measure(crowd: Crowd) -> list[Figure]:
    worker = crowd.worker()
    idle = proportional_bytes(worker)
    ramp = crowd.start()
    busy = proportional_bytes(worker)
    steady = crowd.steadily(worker)
    one = crowd.cancel_one()
    first, rest = crowd.kill()
    handed_back = crowd.terminate()
    everything = crowd.cancel_all()
    return [
        within("from submit to all of them running", ramp, 5),
        Figure(
            "memory of the worker",
            f"{idle / MEGABYTE:.0f} MB idle, {busy / MEGABYTE:.0f} MB with {crowd.number:,} running",
            "< 0.2 MB for each",
            {"idle_mb": idle / MEGABYTE, "busy_mb": busy / MEGABYTE},
            reached=(busy - idle) / MEGABYTE < 0.2 * crowd.number,
        ),
        *of_the_steady(steady),
        within("from the cancel of one to its end", one, 1),
        within("from SIGKILL to the first that runs again", first, 5),
        within("from that one to the last", rest, 5),
        within("from SIGTERM to all handed back and the processes gone", handed_back, 10),
        within("from the cancel of all to the end of the last", everything, 10),
    ]


def measure_async(crowd: Crowd) -> list[Figure]:
    """The same of those that hold no thread."""
    worker, number = crowd.worker(), f"{crowd.number:,}"
    idle = proportional_bytes(worker)
    ramp = crowd.start()
    busy = proportional_bytes(worker)
    steady = crowd.steadily(worker)
    one = crowd.cancel_one()
    first, rest = crowd.kill()
    handed_back = crowd.terminate()
    return [
        within(f"without a thread: from submit to {number} running", ramp, 10),
        Figure(
            "without a thread: memory of the worker",
            f"{idle / MEGABYTE:.0f} MB idle, {busy / MEGABYTE:.0f} MB with {number} running",
            "< 0.05 MB for each",
            {"idle_mb": idle / MEGABYTE, "busy_mb": busy / MEGABYTE},
            reached=(busy - idle) / MEGABYTE < 0.05 * crowd.number,
        ),
        Figure(
            f"without a thread: CPU while {number} wait",
            f"worker {steady.worker:.1%}, Postgres {steady.postgres:.1%} of a core",
            f"worker <= {ASYNC_WORKER_SHARE:.0%}",
            {"worker_share": steady.worker, "postgres_share": steady.postgres},
            reached=steady.worker <= ASYNC_WORKER_SHARE,
        ),
        within("without a thread: oldest heartbeat meanwhile", steady.heartbeat, OLDEST_HEARTBEAT_SECONDS),
        within("without a thread: from the cancel of one to its end", one, 1),
        within("without a thread: from SIGKILL to the first that runs again", first, 5),
        within("without a thread: from that one to the last", rest, 10),
        within("without a thread: from SIGTERM to all handed back", handed_back, 10),
    ]


def of_the_steady(steady: Steady) -> list[Figure]:
    return [
        Figure(
            f"CPU while all run and report every {REPORT_SECONDS} s",
            f"worker {steady.worker:.1%}, Postgres {steady.postgres:.1%} of a core",
            f"<= {WORKER_SHARE:.0%} and {POSTGRES_SHARE:.0%}",
            {"worker_share": steady.worker, "postgres_share": steady.postgres},
            reached=steady.worker <= WORKER_SHARE and steady.postgres <= POSTGRES_SHARE,
        ),
        Figure(
            "write-ahead log meanwhile",
            f"{steady.log_bytes / 1024:,.0f} KB/s",
            "",
            {"bytes_per_second": steady.log_bytes},
        ),
        within("oldest heartbeat of a running task meanwhile", steady.heartbeat, OLDEST_HEARTBEAT_SECONDS),
    ]


def within(name: str, seconds: float, aim: float) -> Figure:
    return Figure(name, f"{seconds:.2f} s", f"<= {aim:g} s", {"seconds": seconds}, reached=seconds <= aim)


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        url = new_database(servers, "many")
        with a_windlass(url, servers, Path(directory), **SETTINGS) as windlass:
            start_all(windlass)
            found = measure(Crowd(windlass, servers, TASK, MANY))
    return found + async_figures() + pictures.figures()


def async_figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        url = new_database(servers, "many_async")
        (module := Path(directory) / "waiting_actor.py").write_text(ASYNC_ACTOR)
        settings = {**ASYNC_SETTINGS, "WINDLASS_ACTORS": str(module)}
        with a_windlass(url, servers, Path(directory), **settings) as windlass:
            start_all(windlass)
            return measure_async(Crowd(windlass, servers, ASYNC_TASK, MANY_ASYNC))
