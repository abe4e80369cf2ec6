"""A thousand tasks at once in one process: how soon all run, what they take, and how soon they stop or run again."""

import os
import signal
import tempfile
import time
from pathlib import Path

from asyncpg import Record as Row

from bench.deployment import a_windlass, new_database, proportional_bytes, start_all
from bench.figures import Figure
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import throw_away_servers
from tests.support.waiting import wait_until

MANY = int(os.environ.get("MANY", "1000"))
MEGABYTE = 1024 * 1024
PATIENCE_SECONDS = 120
"""For each step: what takes longer has failed."""

SETTINGS = {"WINDLASS_ACTOR_THREADS": str(MANY), "WINDLASS_DRAIN_SECONDS": "0"}
"""Nobody waits for tasks of an hour to end by themselves."""


class Crowd:
    """Very many long tasks in one worker, and what is done to them."""

    def __init__(self, windlass: Windlass) -> None:
        self.windlass = windlass
        self.client = windlass.client
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]

    def worker(self) -> int:
        return int(wait_until("a worker", self.client.workers, seconds=PATIENCE_SECONDS)[0]["pid"])

    def start(self) -> float:
        """Seconds from the submit of all until the last one runs."""
        began = time.monotonic()
        self.client.submit_many([{"payload": {"seconds": 3600}, "timeout_seconds": 7200}] * MANY)
        self.wait_for(MANY, "running")
        return time.monotonic() - began

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
        self.wait_for(MANY - 1, "running")
        began = time.monotonic()
        self.client.http.post(
            "/api/v1/tasks/bulk", json={"action": "cancel", "filter": {"status": ["running"]}}
        ).raise_for_status()
        self.wait_for(MANY, "cancelled")
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
    one = crowd.cancel_one()
    first, rest = crowd.kill()
    handed_back = crowd.terminate()
    everything = crowd.cancel_all()
    return [
        within("from submit to all of them running", ramp, 5),
        Figure(
            "memory of the worker",
            f"{idle / MEGABYTE:.0f} MB idle, {busy / MEGABYTE:.0f} MB with {MANY:,} running",
            "< 0.2 MB for each",
            {"idle_mb": idle / MEGABYTE, "busy_mb": busy / MEGABYTE},
            reached=(busy - idle) / MEGABYTE < 0.2 * MANY,
        ),
        within("from the cancel of one to its end", one, 1),
        Figure("from SIGKILL to the first that runs again", f"{first:.2f} s", "", {"seconds": first}),
        within("from that one to the last", rest, 5),
        within("from SIGTERM to all handed back and the processes gone", handed_back, 10),
        within("from the cancel of all to the end of the last", everything, 10),
    ]


def within(name: str, seconds: float, aim: float) -> Figure:
    return Figure(name, f"{seconds:.2f} s", f"<= {aim:g} s", {"seconds": seconds}, reached=seconds <= aim)


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        url = new_database(servers, "many")
        with a_windlass(url, servers, Path(directory), **SETTINGS) as windlass:
            start_all(windlass)
            return measure(Crowd(windlass))
