"""What open streams cost: time from commit to client, memory and CPU of the one api process behind them."""

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

from bench.deployment import a_windlass, cpu_seconds, new_database
from bench.figures import Figure
from tests.support.engine.store import Engine, an_engine
from tests.support.installation import KEY, Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import throw_away_servers
from windlass.shared.store import tasks
from windlass.shared.store.tasks import Claimed, Report

STREAMS = tuple(map(int, os.environ.get("STREAMS", "1 100 1000").split()))
TASKS = 50
WORKERS = 10
"""Each reports all its tasks in one call, as a worker does."""
REPORTS_PER_SECOND = 2
SECONDS = int(os.environ.get("SECONDS", "15"))
AIM_MS = 250
AIM_KILOBYTES = 100


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
            assert len(heard.kept) == len(crew)


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


def told(number: int, run: Run) -> Figure:
    p50, p99 = run.percentile(0.5) * 1000, run.percentile(0.99) * 1000
    kilobytes = run.bytes_per_stream / 1024
    memory = f"{kilobytes:.0f} KB a stream, " if number > 1 else ""
    return Figure(
        f"{number:,} streams, commit to client" if number > 1 else "1 stream, commit to client",
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms; {memory}{len(run.latencies) / SECONDS:.0f} events/s, "
        f"api at {run.cpu_share:.0%} of a core",
        f"p99 < {AIM_MS} ms, <= {AIM_KILOBYTES} KB a stream, no event missing or twice",
        {
            "streams": number,
            "p50_ms": p50,
            "p99_ms": p99,
            "kilobytes_per_stream": kilobytes,
            "events_per_second": len(run.latencies) / SECONDS,
            "cpu_share": run.cpu_share,
        },
        reached=p99 < AIM_MS and (number == 1 or kilobytes <= AIM_KILOBYTES),
        label=f"{number:,} streams" if number > 1 else "1 stream",
    )


def figures() -> list[Figure]:
    """One api process after the other, so that no crowd finds memory that an earlier one has left behind."""
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        url = new_database(servers, "bench_streams")
        attempts = asyncio.run(start_tasks(url))
        found = []
        for number in STREAMS:
            with a_windlass(url, servers, Path(directory)) as windlass:
                windlass.api = windlass.start("api")
                windlass.wait_until_answering()
                found.append(told(number, listen(windlass, attempts, number)))
        return found
