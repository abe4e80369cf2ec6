"""Draining what was put in beforehand: bare Dramatiq and Windlass, in one process or in several."""

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

from bench.bare_dramatiq import declare
from bench.deployment import cpu_seconds_with_children
from tests.support.installation import Windlass
from tests.support.servers.databases import ask
from tests.support.servers.private_servers import Servers
from tests.support.waiting import wait_until

DRAIN_SECONDS = 240

Stages = dict[str, float]
"""Milliseconds of CPU per task, by the part of the way."""


@contextmanager
def bare_worker(servers: Servers, threads: int = 32) -> "Iterator[subprocess.Popen[str]]":
    command = [sys.executable, "-m", "bench.bare_dramatiq", servers.amqp_url, str(threads)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process


def number_started(process: "subprocess.Popen[str]") -> int:
    """So far, as it says itself: what RabbitMQ has handed out may still wait for a thread."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("how many?\n")
    process.stdin.flush()
    answer = process.stdout.readline()
    return int(process.stdout.readline() if answer == "ready\n" else answer)


def starts_of(process: "subprocess.Popen[str]") -> list[float]:
    output, _ = process.communicate("")
    return sorted(float(line) for line in output.split() if line != "ready")


def fill_bare(servers: Servers, tasks: int) -> float:
    """Seconds to send so many no-ops, one by one and unconfirmed, as Dramatiq does by default."""
    broker, actor = declare(servers.amqp_url)
    with closing(broker):  # unconfirmed, they could be lost with a connection that is not closed in order
        began = time.perf_counter()
        for _ in range(tasks):
            actor.send()
        return time.perf_counter() - began


def drain_bare(servers: Servers, tasks: int, threads: Sequence[int]) -> float:
    """No-ops per second of Dramatiq alone, sent beforehand, in as many processes as numbers of threads are given."""
    with ExitStack() as stack:
        processes = [stack.enter_context(bare_worker(servers, number)) for number in threads]
        wait_until(
            "all are started", lambda: sum(map(number_started, processes)) >= tasks, seconds=DRAIN_SECONDS, every=0.2
        )
        starts = sorted(start for process in processes for start in starts_of(process))
    assert len(starts) == tasks
    return tasks / (starts[-1] - starts[0])


def fill_windlass(windlass: Windlass, tasks: int) -> float:
    """Seconds to submit so many no-op probes over HTTP, in batches of a thousand; none of them may start yet."""
    windlass.api = windlass.start("api")
    windlass.wait_until_answering()
    windlass.client.change_provider("probe", limit=0)
    began = time.perf_counter()
    for begin in range(0, tasks, 1000):
        windlass.client.submit_many([{}] * min(1000, tasks - begin))
    return time.perf_counter() - began


def drain_windlass(windlass: Windlass, servers: Servers, tasks: int, *, workers: int = 1) -> tuple[float, Stages]:
    """No-op probes per second through dispatcher and so many actors processes, submitted beforehand; and the
    milliseconds of CPU that each part of the way takes per task."""
    windlass.actors, windlass.janitor, windlass.orchestrator = map(
        windlass.start, ("actors", "janitor", "orchestrator")
    )
    for _ in range(workers - 1):
        windlass.start("actors")
    wait_until("the workers", lambda: len(windlass.client.workers()) == workers, seconds=60)
    windlass.dispatcher = windlass.start("dispatcher")
    wait_until("healthy", lambda: windlass.health() == "healthy", seconds=60, every=0.2)
    time.sleep(1)
    url = windlass.environment["WINDLASS_DATABASE_URL"]
    count = "SELECT count(*) FROM tasks WHERE status = 'completed'"
    with stages_of(windlass, servers, tasks) as stages:  # what starting up takes is no task's
        windlass.client.change_provider("probe", limit=None)
        wait_until("drained", lambda: ask(url, count)[0][0] == tasks, seconds=DRAIN_SECONDS, every=0.2)
    row = ask(url, "SELECT extract(epoch FROM max(completed_at) - min(started_at))::float FROM tasks")[0]
    return float(tasks / row[0]), stages


@contextmanager
def stages_of(windlass: Windlass, servers: Servers, tasks: int) -> Iterator[Stages]:
    """What so many tasks take of each part of the way, once they are through."""
    parts = {
        "worker": [worker["pid"] for worker in windlass.client.workers()],
        "dispatcher": [windlass.dispatcher.pid],
        "Postgres": [servers.postgres_pid],
        "RabbitMQ": [servers.rabbitmq_pid],
        "api": [windlass.api.pid],
    }

    def spent() -> dict[str, float]:
        return {name: sum(map(cpu_seconds_with_children, pids)) for name, pids in parts.items()}

    stages: Stages = {}
    before = spent()
    yield stages
    stages |= {name: (seconds - before[name]) / tasks * 1000 for name, seconds in spent().items()}
