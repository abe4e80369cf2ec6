"""What idle streams cost the others: the time from a commit to the only client that follows the task, while thousands
of streams with filters of their own are open on the same api and nothing concerns them."""

import asyncio
import os
import re
import statistics
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from bench.deployment import a_windlass, cpu_seconds, new_database
from bench.figures import Figure
from bench.streams import AIM_MS, progress, start_one
from tests.support.engine.store import an_engine
from tests.support.installation import KEY, Windlass
from tests.support.servers.private_servers import throw_away_servers
from windlass.shared.store import tasks

IDLE = tuple(map(int, os.environ.get("IDLE", "0 1200 5000").split()))
EVENTS = int(os.environ.get("EVENTS", "200"))
PAUSE_SECONDS = 0.1
"""Between two events: twice as long as a stream waits between two reads."""
ARRIVAL_SECONDS = 60
OPENED_AT_ONCE = 100
PLACE = re.compile(rb"\nid: ")
LARGEST_READ_BYTES = 65_536


@dataclass(frozen=True)
class Run:
    """What the only client that is not idle saw."""

    latencies: list[float]
    cpu_share: float


async def a_stream(windlass: Windlass, query: str) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Open and caught up: its first id has arrived."""
    reader, writer = await asyncio.open_connection("127.0.0.1", windlass.port)
    head = f"GET /api/v1/stream?{query} HTTP/1.1\r\nHost: bench\r\nAuthorization: Bearer {KEY}\r\n\r\n"
    writer.write(head.encode())
    said = b""
    while not PLACE.search(said):
        piece = await reader.read(LARGEST_READ_BYTES)
        assert piece, said
        said += piece
    return reader, writer


async def listen(windlass: Windlass, idle: int) -> Run:
    url, pid = windlass.environment["WINDLASS_DATABASE_URL"], windlass.api.pid
    writers: list[asyncio.StreamWriter] = []
    for begin in range(0, idle, OPENED_AT_ONCE):
        numbers = range(begin, min(begin + OPENED_AT_ONCE, idle))
        opened = await asyncio.gather(*(a_stream(windlass, f"project_id=p{number}") for number in numbers))
        writers += [writer for _, writer in opened]
    async with an_engine(url) as engine:
        attempt = await start_one(engine)
        reader, writer = await a_stream(windlass, f"task_id={attempt.task_id}")
        await asyncio.sleep(2)  # for what opening has left to do
        latencies: list[float] = []
        spent, began = cpu_seconds(pid), time.monotonic()
        for number in range(1, EVENTS + 1):
            await tasks.report(engine.pool, [progress(attempt, number)])
            committed = time.monotonic()
            async with asyncio.timeout(ARRIVAL_SECONDS):
                said = b""
                while f"Step {number}".encode() not in said:
                    said += await reader.read(LARGEST_READ_BYTES)
            latencies.append(time.monotonic() - committed)
            await asyncio.sleep(PAUSE_SECONDS)
        share = (cpu_seconds(pid) - spent) / (time.monotonic() - began)
    for each in (*writers, writer):
        each.transport.abort()
    return Run(latencies, share)


def told(idle: int, run: Run) -> Figure:
    cuts = statistics.quantiles(run.latencies, n=100)
    p50, p99 = cuts[49] * 1000, cuts[98] * 1000
    return Figure(
        f"commit to client beside {idle:,} idle streams",
        f"p50 {p50:.1f} ms, p99 {p99:.1f} ms; api at {run.cpu_share:.0%} of a core",
        f"p99 < {AIM_MS} ms",
        {"idle_streams": idle, "p50_ms": p50, "p99_ms": p99, "cpu_share": run.cpu_share},
        reached=p99 < AIM_MS,
        label=f"{idle:,} idle",
    )


def figures() -> list[Figure]:
    """One api process after the other, so that no crowd finds what an earlier one has left behind."""
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        url = new_database(servers, "bench_idle_streams")
        found = []
        for number in IDLE:
            with a_windlass(url, servers, Path(directory)) as windlass:
                windlass.api = windlass.start("api")
                windlass.wait_until_answering()
                found.append(told(number, asyncio.run(listen(windlass, number))))
        return found
