"""A running Windlass for a test: real processes on the test's own database and virtual host, with short leases."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx

from tests.support.failpoints.arming import Failpoints
from tests.support.fork_server import ForkedProcess, can_start, fork_server
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.services.laptop.supervision.children import LEASH
from windlass.shared.process.procfs import descendants

KEY = "wl_tests1_abcdefghijklmnopqrstuvwxyz"
PROJECT = Path(__file__).parents[2]
SHORT_LEASES = {
    "WINDLASS_LEASE_SECONDS": "4",
    "WINDLASS_HEARTBEAT_SECONDS": "0.5",
    "WINDLASS_STOP_GRACE_SECONDS": "0.8",
    "WINDLASS_LEASE_MARGIN_SECONDS": "0.5",
    "WINDLASS_DRAIN_SECONDS": "0.5",
    "WINDLASS_SAFETY_POLL_SECONDS": "2",
    "WINDLASS_PROBE_FAULTS": "1",
}
NOBODY = UUID("01890000-0000-7000-8000-000000000000")
WAIT_SECONDS = 20
"""So long an answer is held back, at most, for the end of a task: far less than a client waits for it."""
START_SECONDS = 120
"""Processes that start on a busy machine are waited for patiently."""
ENDED = {"completed", "dead", "cancelled"}
SERVICES = ("api", "dispatcher", "actors", "janitor", "orchestrator")

Task = dict[str, Any]
Process = subprocess.Popen[bytes] | ForkedProcess


class Client:
    """The REST API as a test speaks it."""

    def __init__(self, url: str, key: str = KEY) -> None:
        self.http = httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}, timeout=60, trust_env=False)

        self._others: list[Client] = []

    def with_key(self, key: str) -> "Client":
        """The same api, asked by somebody else."""
        self._others.append(Client(str(self.http.base_url), key))
        return self._others[-1]

    def close(self) -> None:
        for other in self._others:
            other.close()
        self.http.close()

    def submit(self, *, wait: float | None = None, **fields: Any) -> Task:
        """A probe, unless the fields say otherwise."""
        response = self.http.post("/api/v1/tasks", json={"actor": "probe", **fields}, params=_only(wait=wait))
        response.raise_for_status()
        task: Task = response.json()
        return task

    def submit_many(self, tasks: list[dict[str, Any]]) -> list[str]:
        response = self.http.post("/api/v1/tasks/batch", json={"tasks": [{"actor": "probe", **task} for task in tasks]})
        response.raise_for_status()
        return [task["task_id"] for task in response.json()["tasks"]]

    def get(self, task_id: str, *, wait: float | None = None) -> Task:
        response = self.http.get(f"/api/v1/tasks/{task_id}", params=_only(wait=wait))
        response.raise_for_status()
        task: Task = response.json()
        return task

    def finished(self, task_id: str, *, seconds: float = 120) -> Task:
        until = time.monotonic() + seconds
        while True:
            left = max(0.0, until - time.monotonic())
            task = self.get(task_id, wait=min(left, WAIT_SECONDS))
            if task["status"] in ENDED:
                return task
            assert left, f"still {task['status']} after {seconds:g} s: {self.story(task_id)}"

    def events(self, task_id: str) -> list[dict[str, Any]]:
        events: list[dict[str, Any]] = []
        after: str | None = "0"
        while after is not None:
            params = {"limit": "1000", "after": after}
            page = self.http.get(f"/api/v1/tasks/{task_id}/events", params=params).raise_for_status().json()
            events += page["items"]
            after = page.get("next_cursor")
        return events

    def story(self, task_id: str) -> list[str]:
        """The names of what happened, in order, progress and output left out."""
        return [event["type"] for event in self.events(task_id) if event["type"] not in {"progress", "output"}]

    def why(self, task_id: str) -> dict[str, Any]:
        answer: dict[str, Any] = self.http.get(f"/api/v1/tasks/{task_id}/why").raise_for_status().json()
        return answer

    def cancel(self, task_id: str) -> httpx.Response:
        return self.http.post(f"/api/v1/tasks/{task_id}/cancel")

    def retry(self, task_id: str) -> httpx.Response:
        return self.http.post(f"/api/v1/tasks/{task_id}/retry")

    def tasks(self, **filters: Any) -> list[Task]:
        response = self.http.get("/api/v1/tasks", params={"limit": 500, **filters})
        response.raise_for_status()
        items: list[Task] = response.json()["items"]
        return items

    def workers(self, state: str = "active") -> list[dict[str, Any]]:
        items = self.http.get("/api/v1/workers").raise_for_status().json()["items"]
        return [worker for worker in items if worker["state"] == state]

    def change_provider(self, name: str, **settings: Any) -> None:
        self.http.patch(f"/api/v1/providers/{name}", json=settings).raise_for_status()

    def wait_until(self, task_id: str, status: str, *, seconds: float = 60) -> Task:
        task: Task = wait_until(
            f"task {task_id} {status}",
            lambda: (task := self.get(task_id))["status"] == status and task,
            seconds=seconds,
        )
        return task

    def wait_until_healthy(self) -> None:
        wait_until(
            "healthy",
            lambda: self.http.get("/health").json()["status"] == "healthy",
            seconds=START_SECONDS,
            every=0.1,
        )

    def wait_until_attempt(self, task_id: str, attempt: int) -> None:
        wait_until(f"attempt {attempt}", lambda: self.get(task_id)["attempt"] == attempt, seconds=90)

    @contextmanager
    def stream(self, task_id: str, *, after: int | None = None) -> "Iterator[Iterator[tuple[int, str, Any]]]":
        """The stream's events as `(id, name, data)`."""
        with self.http.stream(
            "GET", f"/api/v1/tasks/{task_id}/stream", headers=_only(**{"Last-Event-ID": after and str(after)})
        ) as response:
            assert response.status_code == 200, response.read()
            assert response.headers["content-type"].startswith("text/event-stream")
            yield read_events(response.iter_lines())


def read_events(lines: Iterator[str]) -> Iterator[tuple[int, str, Any]]:
    fields: dict[str, str] = {}
    for line in lines:
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
            continue
        if "data" in fields:
            yield int(fields["id"]), fields["event"], json.loads(fields["data"])
        fields = {}


class Windlass:
    """The processes of one test, each one startable, stoppable and killable."""

    may_fork = True
    """A fork shares its memory with the one it came from: what is measured is started as a user starts it."""

    def __init__(self, database_url: str, amqp_url: str, directory: Path, **settings: str) -> None:
        self.directory = directory
        self.port = free_port()
        self.environment = {
            **os.environ,
            **SHORT_LEASES,
            "WINDLASS_DATA_DIR": str(directory / "data"),
            "WINDLASS_DATABASE_URL": database_url,
            "WINDLASS_AMQP_URL": amqp_url,
            "WINDLASS_API_KEY": KEY,
            "WINDLASS_MEDIA_STORAGE": f"file://{directory}/media",
            "WINDLASS_LOG_FORMAT": "text",
            **settings,
        }
        self.processes: list[Process] = []
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = Client(self.url)
        self.clients = [self.client]

    @property
    def failpoints(self) -> Failpoints:
        """Those of its workers, where its settings include `Failpoints.environment`."""
        return Failpoints(Path(self.environment["FAILPOINTS_DIRECTORY"]))

    def start(self, service: str, **settings: str) -> Process:
        """Starts `windlass.services.<service>`, or a module of the tests' own."""
        module = service if "." in service else f"windlass.services.{service}"
        environment = {**self.environment, "WINDLASS_PORT": str(self.port), **settings}
        with (self.directory / "log").open("ab") as log:
            process = start(module, environment, log.fileno(), may_fork=self.may_fork)
        self.processes.append(process)
        return process

    def start_all(self) -> None:
        self.api, self.dispatcher, self.actors, self.janitor, self.orchestrator = map(self.start, SERVICES)
        self.wait_until_healthy()

    def start_though_unhealthy(self) -> None:
        """The same where a queue that nobody serves keeps it from being healthy."""
        self.api, self.dispatcher, self.actors, self.janitor, self.orchestrator = map(self.start, SERVICES)
        self.wait_until_answering()
        wait_until("a worker", self.workers)

    def mend(self) -> None:
        """As after `start_all`, whatever a test has killed, frozen, left running or started beside."""
        ours = {service: getattr(self, service) for service in SERVICES}
        for process in self.processes:
            if process not in ours.values():
                end_with_descendants(process)
            elif process.poll() is None:
                process.send_signal(signal.SIGCONT)
        for service, process in ours.items():
            if process.poll() is not None:
                setattr(self, service, self.start(service))
        self.wait_until_healthy()
        for task in self.client.tasks(status=["queued", "blocked", "running", "retrying"]):
            self.client.cancel(task["task_id"])
        wait_until("nothing runs", lambda: not self.client.tasks(status="running"))
        wait_until("a worker", self.workers)

    def workers(self, client: Client | None = None) -> list[dict[str, Any]]:
        """Those below our guardian. One that was killed together with its own is listed as active for a while."""
        below = {process.pid for process in descendants(self.actors.pid)}
        return [worker for worker in (client or self.client).workers() if worker["pid"] in below]

    def kill_api(self) -> None:
        self.api.kill()
        self.api.wait()

    def start_api_again(self) -> None:
        """On the same port, so that clients find it where it was."""
        self.api = self.start("api")
        self.wait_until_answering()

    def start_api(self, **settings: str) -> Client:
        """One more api on a port of its own."""
        port = free_port()
        self.start("api", WINDLASS_PORT=str(port), **settings)
        client = Client(f"http://127.0.0.1:{port}")
        self.clients.append(client)
        wait_until("an api", lambda: answers(client), seconds=START_SECONDS)
        return client

    def wait_until_answering(self) -> None:
        wait_until("answering", lambda: answers(self.client), seconds=START_SECONDS)

    def wait_until_healthy(self) -> None:
        wait_until(
            "healthy", lambda: answers(self.client) and self.health() == "healthy", seconds=START_SECONDS, every=0.1
        )

    def health(self) -> str:
        return str(self.client.http.get("/health").json()["status"])

    def kill(self, pid: int, signum: signal.Signals = signal.SIGKILL) -> None:
        """Signals a worker, which is a guardian's child and not ours; one that is gone already is fine."""
        with suppress(ProcessLookupError):
            os.kill(pid, signum)

    def log(self) -> str:
        return (self.directory / "log").read_text(errors="replace")

    def stop(self) -> None:
        """Whatever state the test left them in: nothing of them may live on."""
        for process in self.processes:
            end_with_descendants(process)
        for process in self.processes:
            process.wait()
        for client in self.clients:
            client.close()


def start(module: str, environment: Mapping[str, str], stderr: int, *, may_fork: bool = True) -> Process:
    """`python -m` of a module, as a process that a test run which is cut off does not leave behind."""
    if may_fork and can_start(module, environment):
        return fork_server().start(module, environment, stderr)
    return subprocess.Popen([*leash(), sys.executable, "-m", module], cwd=PROJECT, env=environment, stderr=stderr)


def end_with_descendants(process: Process) -> None:
    for each in descendants(process.pid) if process.poll() is None else ():
        each.send(signal.SIGKILL)
    process.kill()


def leash() -> list[str]:
    """So that a test run that is cut off leaves nothing behind. The kernel takes the end of the thread that started a
    process for the end of its parent: what a test's own thread starts has to do without."""
    if threading.current_thread() is not threading.main_thread():
        return []
    return [sys.executable, "-I", "-S", str(LEASH), str(os.getpid()), str(int(signal.SIGKILL)), "-"]


def answers(client: Client, path: str = "/health/ready") -> bool:
    try:
        return client.http.get(path).status_code == 200
    except httpx.TransportError:
        return False


def _only(**values: Any) -> Mapping[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
