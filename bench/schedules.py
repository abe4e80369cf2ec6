"""Schedules: very many that are due at the same moment, what else waits for them, and what idle ones cost."""

import os
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.deployment import a_windlass, new_database, start_all
from bench.figures import Figure
from bench.idleness import idle, of_idleness
from tests.support.installation import Windlass
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import new_directory, running_servers
from tests.support.waiting import wait_until

SCHEDULES = int(os.environ.get("SCHEDULES", "10000"))
WITHIN_SECONDS = 60.0
AHEAD_SECONDS = 20 + SCHEDULES / 500
"""So long after they are made they are due."""
ELSE_EVERY_SECONDS = 0.5
ELSE_SECONDS = 2.0
"""So long a task of another provider may wait meanwhile, at its 99th percentile."""
DRAIN_SECONDS = 600
A_DAY = 86_400
CONFIG = '[providers.aside]\nactor = "probe"\nlimit = 2\n'

CLONES = """
INSERT INTO schedules SELECT c.* FROM schedules s CROSS JOIN generate_series(1, $1::int) AS n
CROSS JOIN LATERAL jsonb_populate_record(NULL::schedules, to_jsonb(s) || jsonb_build_object(
    'schedule_id', gen_random_uuid(), 'name', s.name || '-' || n, 'last_due_at', clock_timestamp(),
    'anchor_at', $2::timestamptz, 'next_due_at', $2::timestamptz, 'next_at', $2::timestamptz)) AS c
WHERE s.name = $3
"""
DUE = "SELECT date_trunc('second', clock_timestamp()) + make_interval(secs => $1)"
RUNS = """
SELECT r.outcome, extract(epoch FROM r.decided_at - r.due_at)::float AS decided,
       extract(epoch FROM t.started_at - r.due_at)::float AS begun
FROM schedule_runs r LEFT JOIN tasks t ON t.task_id = r.task_id WHERE r.due_at = $1
"""
LEFT = "SELECT count(*) FROM tasks WHERE schedule_id IS NOT NULL AND started_at IS NULL"
WAITS = "SELECT extract(epoch FROM started_at - created_at)::float AS seconds FROM tasks WHERE provider = 'aside'"


class Schedules:
    """A running Windlass, and schedules that are copies of one."""

    def __init__(self, windlass: Windlass) -> None:
        self._client = windlass.client
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]

    def make(self, name: str, number: int, ahead_seconds: float) -> Any:
        """So many, all due at the same moment, which is returned."""
        body = {"every_seconds": A_DAY, "overlap": "allow", "target": {"task": {"actor": "probe"}}}
        path = f"/api/v1/schedules/{name}"
        self._client.http.put(path, json=body).raise_for_status()
        due_at = ask(self.url, DUE, ahead_seconds)[0][0]
        ask(self.url, CLONES, number, due_at, name)
        self._client.http.delete(path).raise_for_status()
        return due_at

    def fire(self) -> list[Figure]:
        due_at = self.make("due", SCHEDULES, AHEAD_SECONDS)
        until = time.monotonic() + DRAIN_SECONDS
        while not self._all_are_begun(due_at):
            assert time.monotonic() < until, "they were not started"
            self._client.submit(provider="aside")
            time.sleep(ELSE_EVERY_SECONDS)
        return of_firing([dict(row) for row in ask(self.url, RUNS, due_at)], self._waits())

    def _all_are_begun(self, due_at: Any) -> bool:
        decided = ask(self.url, "SELECT count(*) FROM schedule_runs WHERE due_at = $1", due_at)[0][0]
        return bool(decided >= SCHEDULES and ask(self.url, LEFT)[0][0] == 0)

    def _waits(self) -> list[float]:
        wait_until(
            "the others", lambda: not ask(self.url, "SELECT 1 FROM tasks WHERE completed_at IS NULL"), seconds=60
        )
        return [row["seconds"] for row in ask(self.url, WAITS)]


def of_firing(runs: list[dict[str, Any]], waits: list[float]) -> list[Figure]:
    started = [run for run in runs if run["outcome"] == "started"]
    decided, begun = max(run["decided"] for run in started), max(run["begun"] for run in started)
    waited = statistics.quantiles(waits, n=100)[98]
    return [
        Figure(
            f"{SCHEDULES:,} schedules that are due at once: all have their row and what they start",
            f"{len(started):,} within {decided:.1f} s; the last task was begun after {begun:.1f} s",
            f"all within {WITHIN_SECONDS:g} s",
            {"started": len(started), "decided_seconds": decided, "begun_seconds": begun},
            reached=len(started) == SCHEDULES and max(decided, begun) <= WITHIN_SECONDS,
        ),
        Figure(
            "what a task of another provider waits meanwhile",
            f"p50 {statistics.median(waits) * 1000:.0f} ms, p99 {waited * 1000:.0f} ms of {len(waits)}",
            f"p99 <= {ELSE_SECONDS:g} s",
            {"p50_ms": statistics.median(waits) * 1000, "p99_ms": waited * 1000},
            reached=waited <= ELSE_SECONDS,
        ),
    ]


def figures() -> list[Figure]:
    directory = new_directory()
    try:
        with running_servers(directory) as servers, tempfile.TemporaryDirectory() as place:
            config = Path(place) / "windlass.toml"
            config.write_text(CONFIG)
            url = new_database(servers, "schedules")
            with a_windlass(url, servers, Path(place), WINDLASS_CONFIG=str(config)) as windlass:
                start_all(windlass)
                wait_until("a worker", windlass.client.workers)
                schedules = Schedules(windlass)
                asked = idle(url, directory / "servers.log", lambda: schedules.make("idle", SCHEDULES, A_DAY))
                execute(url, "DELETE FROM schedules")
                idleness = of_idleness(f"{SCHEDULES:,} idle schedules", "schedule", *asked)
                return [*schedules.fire(), idleness]
    finally:
        shutil.rmtree(directory, ignore_errors=True)
