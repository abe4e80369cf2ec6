"""What a thousand open streams cost: time from commit to client, memory and CPU of the one api process behind them."""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from bench.engine import cpu_seconds
from bench.figures import Figure
from shared.store import tasks
from shared.store.tasks import Claimed, Report
from tests.databases import ask, execute, migrate
from tests.integration.engine import Engine, an_engine
from tests.servers import Servers, throw_away_servers
from tests.windlass import KEY, Windlass

STREAMS = int(os.environ.get("STREAMS", "1000"))
TASKS = 50
WORKERS = 10
"""Each reports all its tasks in one call, as a worker does."""
REPORTS_PER_SECOND = 2
SECONDS = int(os.environ.get("SECONDS", "15"))


@dataclass(frozen=True)
class Run:
    """What one crowd of clients saw."""

    latencies: list[float]
    cpu_share: float
    bytes_per_stream: float

    def percentile(self, share: float) -> float:
        return statistics.quantiles(self.latencies, n=1000)[round(share * 1000) - 1]


def listen(windlass: Windlass, attempts: Sequence[Claimed], number: int) -> Run:
    """So many clients, spread over the tasks, while all the tasks report progress."""
    pid = windlass.api.pid
    ids = [str(attempt.task_id) for attempt in attempts]
    memory = resident(pid)
    command = [sys.executable, "-m", "bench.stream_clients", str(windlass.port), KEY, str(number), *ids]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as clients:
        assert clients.stdout
        assert clients.stdout.readline() == "ready\n"
        memory = resident(pid) - memory
        spent, began = cpu_seconds(pid), time.monotonic()
        since = ask(windlass.environment["WINDLASS_DATABASE_URL"], "SELECT clock_timestamp() AS at")[0]["at"]
        asyncio.run(report(windlass.environment["WINDLASS_DATABASE_URL"], attempts))
        share = (cpu_seconds(pid) - spent) / (time.monotonic() - began)
        time.sleep(1)
        output, _ = clients.communicate("")
    committed = {
        (str(row["task_id"]), row["seq"]): row["at"].timestamp()
        for row in ask(
            windlass.environment["WINDLASS_DATABASE_URL"],
            "SELECT task_id, seq, at FROM task_events WHERE at > $1 AND type = 'progress'",
            since,
        )
    }
    arrived = [(task_id, seq, at) for task_id, seq, at in json.loads(output) if (task_id, seq) in committed]
    listened_to = {ids[each % len(ids)] for each in range(number)}
    expected = sum(task_id in listened_to for task_id, _ in committed) * number // len(listened_to)
    assert len(arrived) == expected, f"{len(arrived)} events arrived, {expected} were to"
    return Run([at - committed[task_id, seq] for task_id, seq, at in arrived], share, memory / number)


async def report(url: str, attempts: Sequence[Claimed]) -> None:
    """Every worker a few times a second, one after the other."""
    crews = [attempts[each::WORKERS] for each in range(WORKERS)]
    async with an_engine(url) as engine:
        start = time.monotonic()
        rows = await engine.pool.fetch("SELECT task_id, report_count FROM tasks")
        numbers: dict[UUID, int] = {row["task_id"]: row["report_count"] for row in rows}
        for turn in range(SECONDS * REPORTS_PER_SECOND * WORKERS):
            await asyncio.sleep(max(0, start + turn / (REPORTS_PER_SECOND * WORKERS) - time.monotonic()))
            crew = crews[turn % WORKERS]
            for attempt in crew:
                numbers[attempt.task_id] += 1
            heard = await tasks.report(engine.pool, [progress(each, numbers[each.task_id]) for each in crew])
            assert len(heard) == len(crew)


def progress(attempt: Claimed, number: int) -> Report:
    said = {"elapsed_ms": number, "message": f"Step {number}", "percent": 1.0, "updated_at": "2026-01-01T00:00:00Z"}
    event = {"type": "progress", "data": {"status": "running", "progress": said}}
    return Report(attempt.task_id, attempt.attempt, attempt.claim_token, number, said, None, [event])


async def start_tasks(url: str) -> list[Claimed]:
    async with an_engine(url) as engine:
        return [await start_one(engine) for _ in range(TASKS)]


async def start_one(engine: Engine) -> Claimed:
    task_id: UUID = await engine.submit()
    return await engine.start(task_id, lease_seconds=3600)


def resident(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) * 1024


def measure(servers: Servers, directory: Path) -> list[Figure]:
    execute(servers.database_url, "CREATE DATABASE bench_streams")
    url = servers.database_url.rsplit("/", 1)[0] + "/bench_streams"
    migrate(url)
    windlass = Windlass(url, servers.amqp_url, directory, WINDLASS_SAFETY_POLL_SECONDS="15")
    try:
        windlass.api = windlass.start("api")
        windlass.wait_until_answering()
        attempts = asyncio.run(start_tasks(url))
        one, many = listen(windlass, attempts, 1), listen(windlass, attempts, STREAMS)
    finally:
        windlass.stop()
    load = f"{TASKS} tasks reporting {REPORTS_PER_SECOND}/s"
    slower = many.percentile(0.5) / one.percentile(0.5)
    return [
        Figure(f"1 stream, {load}, commit to client", milliseconds(one), "the floor"),
        Figure(f"{STREAMS} streams, {load}, commit to client", milliseconds(many), f"p50 = {slower:.1f} x one stream"),
        Figure("events told to clients", f"{len(many.latencies) / SECONDS:.0f}/s", "none missing, none twice"),
        Figure("memory per stream", f"{many.bytes_per_stream / 1024:.0f} KB", "<= 100 KB"),
        Figure("CPU of the api process", f"{one.cpu_share:.0%}, then {many.cpu_share:.0%}", "of one core"),
    ]


def milliseconds(run: Run) -> str:
    return f"p50 {run.percentile(0.5) * 1000:.1f} ms, p99 {run.percentile(0.99) * 1000:.1f} ms"


def main() -> None:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        figures = measure(servers, Path(directory))
    width = max(len(figure.name) for figure in figures)
    for figure in figures:
        print(f"{figure.name:<{width}}  {figure.value}  ({figure.aim})")


if __name__ == "__main__":
    main()
