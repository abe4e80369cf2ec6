"""The API's figures, each a ratio against a bare Litestar handler on the same server in the same run."""

import json
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.deployment import a_windlass, new_database
from bench.figures import Figure
from tests.support.installation import KEY, Windlass
from tests.support.servers.databases import ask, execute
from tests.support.servers.private_servers import throw_away_servers
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port

CONNECTIONS = int(os.environ.get("CONNECTIONS", "32"))
REQUESTS = int(os.environ.get("REQUESTS", "600"))
ROUNDS = int(os.environ.get("ROUNDS", "15"))
LOOP = os.environ.get("LOOP", "uvloop")
PER_BATCH = 1000
BATCHES = 8
"""At once: the api reads the next one while Postgres stores the last."""
TASK = {
    "actor": "probe",
    "payload": {"seconds": 0, "result": {"title": "A lighthouse at dusk", "words": list(range(20))}},
    "tags": ["bench", "api"],
    "project_id": "bench",
}


def request(method: str, path: str, body: object = None) -> str:
    content = "" if body is None else json.dumps(body)
    return (
        f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {KEY}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n{content}"
    )


def per_second(port: int, requests: list[str], count: int = REQUESTS, connections: int = CONNECTIONS) -> float:
    """Requests per second, by a process of its own."""
    command = [sys.executable, "-m", "bench.loader", str(port), str(connections), str(count)]
    ended = subprocess.run(
        command, input=json.dumps(requests), stdout=subprocess.PIPE, text=True, check=True, timeout=120
    )
    return count / float(ended.stdout)


def in_turns(measures: dict[str, Callable[[], float]]) -> tuple[dict[str, float], Callable[[str, str], float]]:
    """The median of each one's rounds, and the median of two's ratio round by round. They take turns in short rounds,
    so that a busy moment of the machine hits all alike."""
    for measure in measures.values():
        measure()
    rounds = [{name: measure() for name, measure in measures.items()} for _ in range(ROUNDS)]
    medians = {name: statistics.median(each[name] for each in rounds) for name in measures}
    return medians, lambda ours, bare: statistics.median(each[ours] / each[bare] for each in rounds)


@contextmanager
def bare_server(database_url: str) -> Iterator[int]:
    port = free_port()
    process = subprocess.Popen([sys.executable, "-m", "bench.bare_litestar", database_url, str(port), LOOP])
    try:
        wait_until("the bare server", lambda: accepts(port))
        yield port
    finally:
        process.terminate()
        process.wait()


def accepts(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def measure(windlass: Windlass, bare: int, database_url: str) -> list[Figure]:
    ours = windlass.port
    post = request("POST", "/api/v1/tasks", TASK)
    batch = request("POST", "/api/v1/tasks/batch", {"tasks": [TASK] * PER_BATCH})
    writes, write_ratio = in_turns(
        {
            "bare": lambda: per_second(bare, [request("POST", "/tasks", TASK)]),
            "single": lambda: per_second(ours, [post]),
            "batch": lambda: PER_BATCH * per_second(ours, [batch], count=3 * BATCHES, connections=BATCHES),
        }
    )
    ids = [row["task_id"] for row in ask(database_url, "SELECT task_id FROM tasks ORDER BY random() LIMIT 200")]
    reads, read_ratio = in_turns(
        {
            "bare": lambda: per_second(bare, [request("GET", f"/tasks/{task_id}") for task_id in ids]),
            "ours": lambda: per_second(ours, [request("GET", f"/api/v1/tasks/{task_id}") for task_id in ids]),
        }
    )
    single, batched, read = write_ratio("single", "bare"), write_ratio("batch", "single"), read_ratio("ours", "bare")
    return [
        Figure(
            f"bare Litestar, one INSERT for all that wait, {CONNECTIONS} connections",
            f"{writes['bare']:.0f}/s",
            "the ceiling: it gathers commits as ours does",
            {"per_second": writes["bare"]},
            label="bare Litestar, gathered INSERTs",
        ),
        Figure(
            "POST /tasks",
            f"{writes['single']:.0f}/s = {single:.2f} x bare",
            ">= 0.6 x",
            {"per_second": writes["single"], "ratio": single},
            reached=single >= 0.6,
            label="POST /tasks",
        ),
        Figure(
            f"POST /tasks/batch of {PER_BATCH}, {BATCHES} connections",
            f"{writes['batch']:.0f} tasks/s = {batched:.1f} x single posts",
            ">= 10 x",
            {"per_second": writes["batch"], "ratio": batched},
            reached=batched >= 10,
            label=f"POST /tasks/batch of {PER_BATCH}",
        ),
        Figure(
            "bare Litestar, one SELECT",
            f"{reads['bare']:.0f}/s",
            "the ceiling",
            {"per_second": reads["bare"]},
            label="bare Litestar, one SELECT",
        ),
        Figure(
            "GET /tasks/{id}",
            f"{reads['ours']:.0f}/s = {read:.2f} x bare",
            ">= 0.7 x",
            {"per_second": reads["ours"], "ratio": read},
            reached=read >= 0.7,
            label="GET /tasks/{id}",
        ),
    ]


def figures() -> list[Figure]:
    with throw_away_servers() as servers, tempfile.TemporaryDirectory() as directory:
        url = new_database(servers, "bench_api")
        execute(url, "CREATE TABLE bare_tasks (LIKE tasks INCLUDING ALL)")
        with a_windlass(url, servers, Path(directory)) as windlass:
            windlass.api = windlass.start("api")
            windlass.wait_until_answering()
            with bare_server(url) as bare:
                time.sleep(1)
                return measure(windlass, bare, url)
