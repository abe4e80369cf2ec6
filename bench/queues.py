"""Three hundred queues in one worker: what they take while nothing happens, and what a task costs among them."""

import os
import statistics
import tempfile
import time
from pathlib import Path

from bench.deployment import a_windlass, cpu_seconds_with_children, new_database, start_all
from bench.figures import Figure
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers, throw_away_servers
from tests.support.waiting import wait_until

QUEUES = int(os.environ.get("QUEUES", "300"))
TASKS = int(os.environ.get("TASKS", "3000"))
THREADS = 8
SAMPLES = 40
IDLE_SECONDS = 10
PATIENCE_SECONDS = 180

CONFIGURATION = "".join(f'[providers.p{number}]\nactor = "probe"\n' for number in range(QUEUES))


class ManyQueues:
    """A running Windlass with so many providers, and what is measured on it."""

    def __init__(self, windlass: Windlass, servers: Servers) -> None:
        self.windlass = windlass
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]
        self.worker = int(windlass.client.workers()[0]["pid"])
        self.parts = {
            "worker": self.worker,
            "dispatcher": windlass.dispatcher.pid,
            "Postgres": servers.postgres_pid,
            "RabbitMQ": servers.rabbitmq_pid,
        }

    def serve_all(self) -> None:
        """Until a task of each has run: then all are declared, consumed, and known to everybody."""
        self.run(QUEUES)

    def connections(self) -> int:
        """Of the worker alone, to RabbitMQ: sockets whose other end has its port."""
        port = int(self.windlass.environment["WINDLASS_AMQP_URL"].rpartition("@")[2].partition(":")[2].split("/")[0])
        links = (str(entry.readlink()) for entry in Path(f"/proc/{self.worker}/fd").iterdir() if entry.is_symlink())
        sockets = {link for link in links if link.startswith("socket:")}
        lines = [line.split() for line in Path(f"/proc/{self.worker}/net/tcp").read_text().splitlines()[1:]]
        return sum(f"socket:[{line[9]}]" in sockets and int(line[2].split(":")[1], 16) == port for line in lines)

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.worker}/fd").iterdir()))

    def threads(self) -> int:
        return len(list(Path(f"/proc/{self.worker}/task").iterdir()))

    def idle_share(self) -> dict[str, float]:
        before = self._cpu()
        time.sleep(IDLE_SECONDS)
        return {name: (spent - before[name]) / IDLE_SECONDS for name, spent in self._cpu().items()}

    def latency(self) -> float:
        """Median seconds from the submit of a task to its start, in queues that nobody has used for a while."""
        starts: list[float] = []
        for number in range(SAMPLES):
            task = self.windlass.client.submit(provider=f"p{number * 7 % QUEUES}", wait=20)
            (row,) = ask(
                self.url,
                "SELECT extract(epoch FROM started_at - created_at)::float FROM tasks WHERE task_id = $1",
                task["task_id"],
            )
            starts.append(row[0])
        return float(statistics.median(starts))

    def run(self, tasks: int) -> tuple[float, dict[str, float]]:
        """No-ops over all the queues: tasks per second, CPU milliseconds a task by part."""
        ended = "SELECT count(*) FROM tasks WHERE status = 'completed'"
        already = ask(self.url, ended)[0][0]
        before, began = self._cpu(), time.monotonic()
        for begin in range(0, tasks, 1000):
            batch = range(begin, min(tasks, begin + 1000))
            self.windlass.client.submit_many([{"provider": f"p{number % QUEUES}"} for number in batch])
        wait_until(
            "drained",
            lambda: ask(self.url, ended)[0][0] == already + tasks,
            seconds=PATIENCE_SECONDS,
            every=0.1,
        )
        passed = time.monotonic() - began
        spent = {name: (after - before[name]) * 1000 / tasks for name, after in self._cpu().items()}
        return tasks / passed, spent

    def _cpu(self) -> dict[str, float]:
        return {name: cpu_seconds_with_children(pid) for name, pid in self.parts.items()}


def measure(many: ManyQueues) -> list[Figure]:
    many.serve_all()
    idle = many.idle_share()
    connections, descriptors, threads = many.connections(), many.descriptors(), many.threads()
    latency = many.latency()
    rate, spent = many.run(TASKS)
    return [
        _at_most("connections of the worker to RabbitMQ", connections, 2),
        _at_most("descriptors of the worker", descriptors, 100),
        _at_most("threads of the worker", threads, THREADS + 20),
        Figure(
            "CPU while nothing happens",
            ", ".join(f"{name} {share:.1%}" for name, share in idle.items()),
            "",
            {f"{name}_share": share for name, share in idle.items()},
        ),
        Figure(
            "from submit to start of a task, one at a time",
            f"{latency * 1000:.1f} ms",
            "<= 15 ms",
            {"median_ms": latency * 1000},
            reached=latency <= 0.015,
        ),
        Figure(
            f"{TASKS:,} no-ops over all queues",
            f"{rate:,.0f} / s",
            ">= 300 / s",
            {"per_second": rate},
            reached=rate >= 300,
        ),
        Figure(
            "CPU of each of them",
            f"{sum(spent.values()):.2f} ms ({', '.join(f'{name} {ms:.2f}' for name, ms in spent.items())})",
            "<= 4 ms",
            {f"{name}_ms": ms for name, ms in spent.items()},
            reached=sum(spent.values()) <= 4,
        ),
    ]


def _at_most(name: str, number: int, most: int) -> Figure:
    return Figure(name, f"{number:,}", f"<= {most}", {"number": number}, reached=number <= most)


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        configuration = Path(directory) / "windlass.toml"
        configuration.write_text(CONFIGURATION)
        settings = {"WINDLASS_ACTOR_THREADS": str(THREADS), "WINDLASS_CONFIG": str(configuration)}
        url = new_database(servers, "queues")
        with a_windlass(url, servers, Path(directory), **settings) as windlass:
            start_all(windlass)
            wait_until("a worker", windlass.client.workers, seconds=PATIENCE_SECONDS)
            return measure(ManyQueues(windlass, servers))
