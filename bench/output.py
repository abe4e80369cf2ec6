"""What an agent's output costs: lines that are flushed one by one, and a flood of them."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from bench.deployment import a_windlass, new_database, precise_cpu_seconds, start_all
from bench.figures import Figure, told
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import throw_away_servers
from tests.support.waiting import wait_until

LINES = int(os.environ.get("LINES_ONE_BY_ONE", "20000"))
LINES_A_SECOND = 1000
FLOOD_LINES = 100_000
LARGEST_EVENT_BYTES = 65_536
PATIENCE_SECONDS = 40
"""What the api lets one wait, and longer than any of it takes."""
SETTLE_SECONDS = 1.0
AIM_MS = 0.05

PYTHON = shutil.which("python3", path="/usr/local/bin:/usr/bin") or sys.executable
"""The machine's own: that of the bench may stand in a home that is closed to the account of root's agents."""

SPEAKER = """
import json, sys, time
params = json.load(sys.stdin)["params"]
pause, begun = params.get("pause", 0), time.monotonic()
for number in range(params["lines"]):
    print(f"{number:09d} " + "x" * 64, flush=bool(pause))
    if pause and (ahead := begun + number * pause - time.monotonic()) > 0:
        time.sleep(ahead)
"""

CONFIGURATION = """
[agents.speaker]
command = ["{python}", "-I", "-c", '''{program}''']
sandbox = "off"
"""


class Listening:
    """A Windlass with one agent that prints as much as it is told to."""

    def __init__(self, windlass: Windlass) -> None:
        self._client = windlass.client
        self._url = windlass.environment["WINDLASS_DATABASE_URL"]
        worker = wait_until("a worker", self._client.workers, seconds=PATIENCE_SECONDS)[0]
        self._threads = Path(f"/proc/{worker['pid']}/task")

    def cpu_seconds(self) -> float:
        """Of the worker, in all its threads: none of them ends meanwhile that had done much."""
        return sum(precise_cpu_seconds_of(thread) for thread in self._threads.iterdir())

    def idle(self, seconds: float) -> float:
        """Its CPU in a second of doing nothing."""
        sleep(SETTLE_SECONDS)
        before = self.cpu_seconds()
        sleep(seconds)
        return (self.cpu_seconds() - before) / seconds

    def hear(self, **params: float) -> tuple[float, float, list[int]]:
        """Seconds, the worker's CPU seconds, and the bytes of text of each output event."""
        before, began = self.cpu_seconds(), monotonic()
        payload = {"subagent_type": "speaker", "prompt": "Speak.", "params": params}
        task = self._client.submit(actor="agent", payload=payload, timeout_seconds=PATIENCE_SECONDS)
        ended = self._client.finished(task["task_id"], seconds=PATIENCE_SECONDS)
        assert ended["status"] == "completed", ended["error"]
        passed, spent = monotonic() - began, self.cpu_seconds() - before
        rows = ask(
            self._url,
            "SELECT octet_length(data ->> 'text') FROM task_events WHERE task_id::text = $1 AND type = 'output'",
            task["task_id"],
        )
        return passed, spent, [row[0] for row in rows]


def precise_cpu_seconds_of(thread: Path) -> float:
    try:
        return precise_cpu_seconds(int(thread.name))
    except (FileNotFoundError, ProcessLookupError):
        return 0


def measure(listening: Listening) -> list[Figure]:
    listening.hear(lines=100)
    idle = listening.idle(3)
    passed, spent, events = listening.hear(lines=LINES, pause=1 / LINES_A_SECOND)
    a_line = (spent - idle * passed) / LINES * 1000
    flood_passed, flood_spent, flood = listening.hear(lines=FLOOD_LINES)
    return [
        Figure(
            f"{LINES:,} lines, {LINES_A_SECOND:,} a second, flushed one by one: the worker's CPU for a line",
            f"{told(a_line)} ms, {len(events)} events",
            f"< {AIM_MS} ms",
            {"line_ms": a_line, "events": len(events), "seconds": passed},
            reached=a_line < AIM_MS,
        ),
        Figure(
            f"{FLOOD_LINES:,} lines at once ({sum(flood) / 1e6:.1f} MB): the largest event",
            f"{max(flood):,} bytes of {len(flood)} events, {told(flood_passed)} s, {told(flood_spent)} s CPU",
            f"<= {LARGEST_EVENT_BYTES:,} bytes",
            {"largest_bytes": max(flood), "events": len(flood), "seconds": flood_passed, "cpu_seconds": flood_spent},
            reached=max(flood) <= LARGEST_EVENT_BYTES,
        ),
    ]


@contextmanager
def listening() -> Iterator[Listening]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        place = Path(directory)
        place.chmod(0o755)
        config = place / "windlass.toml"
        config.write_text(CONFIGURATION.format(python=PYTHON, program=SPEAKER))
        settings = {"WINDLASS_CONFIG": str(config), "WINDLASS_ACTOR_THREADS": "8"}
        with a_windlass(new_database(servers, "output"), servers, place, **settings) as windlass:
            start_all(windlass)
            yield Listening(windlass)


def figures() -> list[Figure]:
    with listening() as found:
        return measure(found)
