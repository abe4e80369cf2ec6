"""The engine's figures, each a ratio against bare Dramatiq in the same run on the same servers."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.bare_dramatiq import declare
from bench.figures import Figure, show
from shared.process_table import descendants
from tests.databases import ask, execute, migrate
from tests.servers import Servers, throw_away_servers
from tests.waiting import wait_until
from tests.windlass import Windlass

TASKS = int(os.environ.get("TASKS", "3000"))
SAMPLES = 40
THREADS = int(os.environ.get("THREADS", "32"))
IDLE_SECONDS = 30
SETTLE_SECONDS = 20
"""Postgres' backends tell their statistics only when they next do something."""


@contextmanager
def bare_worker(servers: Servers) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-m", "bench.bare_dramatiq", servers.amqp_url, str(THREADS)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def starts_of(process: "subprocess.Popen[str]") -> list[float]:
    output, _ = process.communicate("")
    return sorted(float(line) for line in output.split() if line != "ready")


def drain_bare(servers: Servers) -> float:
    """No-ops per second of Dramatiq alone, sent beforehand."""
    broker, actor = declare(servers.amqp_url)
    for _ in range(TASKS):
        actor.send()
    with bare_worker(servers) as process:
        wait_until("drained", lambda: broker.get_queue_message_counts("bare")[0] == 0, seconds=120)
        time.sleep(0.5)
        starts = starts_of(process)
    assert len(starts) == TASKS
    return TASKS / (starts[-1] - starts[0])


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


def drain_windlass(windlass: Windlass, servers: Servers) -> tuple[float, dict[str, float]]:
    """No-op probes per second through dispatcher and one actors process, submitted beforehand; and the milliseconds of
    CPU that each part of the way takes per task."""
    windlass.api = windlass.start("api")
    windlass.wait_until_answering()
    for _ in range(TASKS // 1000):
        windlass.client.submit_many([{}] * 1000)
    windlass.actors, windlass.janitor = map(windlass.start, ("actors", "janitor"))
    worker = wait_until("a worker", windlass.client.workers)[0]["pid"]
    time.sleep(1)
    windlass.dispatcher = windlass.start("dispatcher")
    parts = {
        "worker": [worker],
        "dispatcher": [windlass.dispatcher.pid],
        "Postgres": [servers.postgres_pid, *(process.pid for process in descendants(servers.postgres_pid))],
        "RabbitMQ": [servers.rabbitmq_pid],
        "api": [windlass.api.pid],
    }
    before = {name: sum(map(cpu_seconds, pids)) for name, pids in parts.items()}
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    count = "SELECT count(*) FROM tasks WHERE status = 'completed'"
    wait_until("drained", lambda: ask(url, count)[0][0] == TASKS, seconds=120, every=0.2)
    parts["Postgres"] = [servers.postgres_pid, *(process.pid for process in descendants(servers.postgres_pid))]
    spent = {name: sum(map(cpu_seconds, pids)) - before[name] for name, pids in parts.items()}
    row = ask(url, "SELECT extract(epoch FROM max(completed_at) - min(started_at))::float FROM tasks")[0]
    return float(TASKS / row[0]), {name: seconds / TASKS * 1000 for name, seconds in spent.items()}


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


def idle(windlass: Windlass) -> tuple[float, dict[str, float]]:
    """Transactions per second that Postgres sees, and the CPU share of each process, while nothing happens."""
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    query = "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = current_database()"
    processes = {name: getattr(windlass, name).pid for name in ("dispatcher", "janitor", "actors")}
    processes["api"] = windlass.api.pid
    processes["worker"] = windlass.client.workers()[0]["pid"]
    time.sleep(SETTLE_SECONDS)
    before, cpu_before = ask(url, query)[0][0], {name: cpu_seconds(pid) for name, pid in processes.items()}
    time.sleep(IDLE_SECONDS)
    after, cpu_after = ask(url, query)[0][0], {name: cpu_seconds(pid) for name, pid in processes.items()}
    shares = {name: (cpu_after[name] - cpu_before[name]) / IDLE_SECONDS for name in processes}
    return (after - before) / IDLE_SECONDS, shares


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(servers: Servers, directory: Path) -> list[Figure]:
    execute(servers.database_url, "CREATE DATABASE bench")
    url = servers.database_url.rsplit("/", 1)[0] + "/bench"
    migrate(url)
    # The defaults of a deployment, not the short leases of the tests.
    defaults = {
        "WINDLASS_LEASE_SECONDS": "30", "WINDLASS_HEARTBEAT_SECONDS": "5", "WINDLASS_STOP_GRACE_SECONDS": "5",
        "WINDLASS_LEASE_MARGIN_SECONDS": "2", "WINDLASS_SAFETY_POLL_SECONDS": "15",
        "WINDLASS_ACTOR_THREADS": str(THREADS),
    }  # fmt: skip
    windlass = Windlass(url, servers.amqp_url, directory, **defaults)
    try:
        bare, bare_latency = drain_bare(servers), latency_bare(servers)
        durable, stages = drain_windlass(windlass, servers)
        latency = latency_windlass(windlass)
        queries, shares = idle(windlass)
        worker_back, all_back = recovery(windlass)
    finally:
        windlass.stop()
    stage_text = ", ".join(f"{name} {milliseconds:.2f} ms" for name, milliseconds in stages.items())
    cpu = ", ".join(f"{name} {share:.1%}" for name, share in shares.items())
    return [
        Figure(f"bare Dramatiq, no state, {THREADS} threads", f"{bare:.0f} tasks/s", "the ceiling"),
        Figure("Windlass, every step durable", f"{durable:.0f} tasks/s = {durable / bare:.2f} x bare", ">= 0.35 x"),
        Figure("CPU per task by stage", stage_text, f"{sum(stages.values()):.2f} ms in all, {os.cpu_count()} cores"),
        Figure("bare Dramatiq, send to start", f"{bare_latency * 1000:.1f} ms median", "the floor"),
        Figure(
            "Windlass, submit to start",
            f"{latency * 1000:.1f} ms median = {latency / bare_latency:.1f} x bare",
            "<= 5 x",
        ),
        Figure("idle, transactions seen by Postgres", f"{queries:.2f}/s over all processes", "< 0.5/s a process"),
        Figure("idle, CPU", cpu, "next to none"),
        Figure("SIGKILL of a worker to running again", f"{worker_back:.1f} s", "lease 30 s + a few"),
        Figure("SIGKILL of worker and guardian to running again", f"{all_back:.1f} s", "lease 30 s + a few"),
    ]


def main() -> None:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        figures = measure(servers, Path(directory))
    show(figures)


if __name__ == "__main__":
    main()
