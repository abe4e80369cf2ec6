"""The engine's figures, each a ratio against bare Dramatiq in the same run on the same servers."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bench.bare_dramatiq import declare
from bench.deployment import LEASE_SECONDS, a_windlass, cpu_seconds_with_children, new_database
from bench.figures import Figure
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers, throw_away_servers
from tests.support.waiting import wait_until

TASKS = int(os.environ.get("TASKS", "6000"))
THREADS = int(os.environ.get("THREADS", "64"))
"""Of the worker. Ours wait for their commits, so that they gain by being many; those of bare Dramatiq do not."""
BARE_THREADS = (8, 32, 64)
"""In one process as well; the best of them is the ceiling."""
SAMPLES = 40


@contextmanager
def bare_worker(servers: Servers, threads: int = 32) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-m", "bench.bare_dramatiq", servers.amqp_url, str(threads)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def starts_of(process: "subprocess.Popen[str]") -> list[float]:
    output, _ = process.communicate("")
    return sorted(float(line) for line in output.split() if line != "ready")


def fill_bare(servers: Servers, tasks: int) -> float:
    """Seconds to send so many no-ops, one by one and unconfirmed, as Dramatiq does by default."""
    _, actor = declare(servers.amqp_url)
    began = time.perf_counter()
    for _ in range(tasks):
        actor.send()
    return time.perf_counter() - began


def drain_bare(servers: Servers, tasks: int, threads: Sequence[int]) -> float:
    """No-ops per second of Dramatiq alone, sent beforehand, in as many processes as numbers of threads are given."""
    broker, _ = declare(servers.amqp_url)
    with ExitStack() as stack:
        processes = [stack.enter_context(bare_worker(servers, number)) for number in threads]
        wait_until("drained", lambda: broker.get_queue_message_counts("bare")[0] == 0, seconds=120)
        time.sleep(0.5)
        starts = sorted(start for process in processes for start in starts_of(process))
    assert len(starts) == tasks
    return tasks / (starts[-1] - starts[0])


def best_bare(servers: Servers) -> tuple[float, int]:
    """The most no-ops per second that one process brings, and with how many threads."""
    rates = {}
    for threads in BARE_THREADS:
        fill_bare(servers, TASKS)
        rates[threads] = drain_bare(servers, TASKS, [threads])
    best = max(rates, key=lambda threads: rates[threads])
    return rates[best], best


def latency_bare(servers: Servers) -> float:
    """Median seconds from send to start on an idle worker."""
    _, actor = declare(servers.amqp_url)
    sent: list[float] = []
    with bare_worker(servers) as process:
        assert process.stdout
        process.stdout.readline()
        time.sleep(1)
        for _ in range(SAMPLES):
            sent.append(time.time())
            actor.send()
            time.sleep(0.05)
        starts = starts_of(process)
    return statistics.median(start - at for at, start in zip(sent, starts, strict=True))


def fill_windlass(windlass: Windlass, tasks: int) -> float:
    """Seconds to submit so many no-op probes over HTTP, in batches of a thousand."""
    windlass.api = windlass.start("api")
    windlass.wait_until_answering()
    began = time.perf_counter()
    for begin in range(0, tasks, 1000):
        windlass.client.submit_many([{}] * min(1000, tasks - begin))
    return time.perf_counter() - began


def drain_windlass(
    windlass: Windlass, servers: Servers, tasks: int, *, workers: int = 1
) -> tuple[float, dict[str, float]]:
    """No-op probes per second through dispatcher and so many actors processes, submitted beforehand; and the
    milliseconds of CPU that each part of the way takes per task."""
    windlass.actors, windlass.janitor = map(windlass.start, ("actors", "janitor"))
    for _ in range(workers - 1):
        windlass.start("actors")
    wait_until("the workers", lambda: len(windlass.client.workers()) == workers, seconds=60)
    time.sleep(1)
    windlass.dispatcher = windlass.start("dispatcher")
    parts = {
        "worker": [worker["pid"] for worker in windlass.client.workers()],
        "dispatcher": [windlass.dispatcher.pid],
        "Postgres": [servers.postgres_pid],
        "RabbitMQ": [servers.rabbitmq_pid],
        "api": [windlass.api.pid],
    }
    before = {name: sum(map(cpu_seconds_with_children, pids)) for name, pids in parts.items()}
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    count = "SELECT count(*) FROM tasks WHERE status = 'completed'"
    wait_until("drained", lambda: ask(url, count)[0][0] == tasks, seconds=120, every=0.2)
    spent = {name: sum(map(cpu_seconds_with_children, pids)) - before[name] for name, pids in parts.items()}
    row = ask(url, "SELECT extract(epoch FROM max(completed_at) - min(started_at))::float FROM tasks")[0]
    return float(tasks / row[0]), {name: seconds / tasks * 1000 for name, seconds in spent.items()}


def latency_windlass(windlass: Windlass) -> float:
    """Median seconds from the row's commit time to the claim on an idle system."""
    client = windlass.client
    ids = []
    for _ in range(SAMPLES):
        ids.append(client.submit()["task_id"])
        client.finished(ids[-1])
        time.sleep(0.02)
    rows = ask(
        windlass.environment["WINDLASS_DATABASE_URL"],
        "SELECT extract(epoch FROM started_at - created_at)::float AS s FROM tasks WHERE task_id = ANY ($1::uuid[])",
        ids,
    )
    return float(statistics.median(row["s"] for row in rows))


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


def measure(servers: Servers, directory: Path) -> list[Figure]:
    threads = {"WINDLASS_ACTOR_THREADS": str(THREADS)}
    with a_windlass(new_database(servers, "bench"), servers, directory, **threads) as windlass:
        bare, bare_threads = best_bare(servers)
        bare_latency = latency_bare(servers)
        fill_windlass(windlass, TASKS)
        durable, stages = drain_windlass(windlass, servers, TASKS)
        latency = latency_windlass(windlass)
        worker_back, all_back = recovery(windlass)
    stage_text = ", ".join(f"{name} {milliseconds:.2f} ms" for name, milliseconds in stages.items())
    return [
        Figure(
            f"bare Dramatiq, no state, {bare_threads} threads, the best of {BARE_THREADS}",
            f"{bare:.0f} tasks/s",
            "the ceiling",
            {"tasks_per_second": bare},
            label="bare Dramatiq",
        ),
        Figure(
            f"Windlass, every step durable, {THREADS} threads",
            f"{durable:.0f} tasks/s = {durable / bare:.2f} x bare",
            ">= 0.5 x",
            {"tasks_per_second": durable, "ratio": durable / bare},
            reached=durable >= 0.5 * bare,
            label="Windlass",
        ),
        Figure(
            "CPU per task by stage",
            stage_text,
            f"{sum(stages.values()):.2f} ms in all, {os.cpu_count()} cores",
            {f"{name}_ms": milliseconds for name, milliseconds in stages.items()},
        ),
        Figure(
            "bare Dramatiq, send to start",
            f"{bare_latency * 1000:.1f} ms median",
            "the floor",
            {"p50_ms": bare_latency * 1000},
            label="bare Dramatiq",
        ),
        Figure(
            "Windlass, submit to start",
            f"{latency * 1000:.1f} ms median = {latency / bare_latency:.1f} x bare",
            "<= 5 x",
            {"p50_ms": latency * 1000, "ratio": latency / bare_latency},
            reached=latency <= 5 * bare_latency,
            label="Windlass",
        ),
        *(
            Figure(
                f"SIGKILL of {whom} to running again",
                f"{seconds:.1f} s",
                "lease 30 s + a few",
                {"seconds": seconds},
                reached=seconds < LEASE_SECONDS + 5,
            )
            for whom, seconds in (("a worker", worker_back), ("worker and guardian", all_back))
        ),
    ]


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        return measure(servers, Path(directory))
