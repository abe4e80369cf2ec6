"""The second half of `SCENE=failpoints make chaos`: a delivery, once for each place of a list at which somebody is
killed with -9 on its way, and taken by its receiver each time, under one id.

The worker has places of its own, before it sends and when it was answered. For the others whoever comes to a row waits,
is killed there, and what it had begun is undone, or committed without anybody hearing of it.
"""

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import Popen
from typing import Any

from tests.acceptance.conftest import a_windlass
from tests.chaos.drills import play_each
from tests.chaos.faults.carrying_out import is_a_worker
from tests.chaos.record import Record
from tests.chaos.site.configuration import TELLER
from tests.chaos.webhooks.books import Books
from tests.chaos.webhooks.judge import judge_webhooks
from tests.chaos.webhooks.rows import read_webhooks
from tests.chaos.webhooks.witness import install_witness
from tests.chaos.workflows.failpoints import UNDONE, UNHEARD, answered
from tests.chaos.workflows.held_place import HeldPlace, Place
from tests.support.failpoints.arming import Failpoints
from tests.support.failpoints.catalogue import OF_WEBHOOKS
from tests.support.installation import PROJECT, Windlass
from tests.support.servers.databases import ask, migrate
from tests.support.servers.private_servers import open_directory, throw_away_servers
from tests.support.waiting import wait_until
from windlass.services.laptop.ports import free_port
from windlass.shared.process.procfs import descendants

CONFIG = """
[network]
allow_private = ["127.0.0.1"]

[actors.webhook.retries]
other = [0.2, 0.5, 1, 1, 2, 2, 3, 3, 3]
"""
MOST_SECONDS = 120
WAITING = "SELECT 1 FROM deliveries WHERE state = 'waiting'"
DELIVERED = "SELECT 1 FROM deliveries WHERE subject = $1 AND state = 'delivered'"


@dataclass(frozen=True)
class Failpoint:
    """Who is killed where, while the task ends in this way."""

    name: str
    who: str
    place: Place | None = None
    is_undone: bool = True
    is_cancelled: bool = False


def failpoints() -> list[Failpoint]:
    """The list, as it is printed."""
    moved = Place("outbox", "INSERT", "NEW.feature = 'webhook' AND NEW.status = 'completed'")
    cancelled = Place("outbox", "INSERT", "NEW.feature = 'webhook' AND NEW.status = 'cancelled'")
    written, tried = Place("deliveries", "INSERT", "true"), Place("delivery_tries", "INSERT", "true")
    recorded = Place("deliveries", "UPDATE", "NEW.state = 'delivered'")
    found = [Failpoint(name, "actors") for name in OF_WEBHOOKS]
    for undone in (True, False):
        became = UNDONE if undone else UNHEARD
        found += [
            Failpoint(f"worker ends a task, {became}", "actors", moved, undone),
            Failpoint(f"orchestrator writes its delivery, {became}", "orchestrator", written, undone),
            Failpoint(f"worker records the answer, {became}", "actors", tried, undone),
            Failpoint(f"orchestrator records the outcome, {became}", "orchestrator", recorded, undone),
            Failpoint(f"api cancels a task, {became}", "api", cancelled, undone, is_cancelled=True),
        ]
    return [
        *found,
        Failpoint("dispatcher when a delivery was written", "dispatcher"),
        Failpoint("janitor when a delivery was written", "janitor"),
        Failpoint("receiver when a delivery was written", "receiver"),
    ]


class Drill:
    """One installation with one endpoint, and one task after the other on it."""

    def __init__(self, windlass: Windlass, directory: Path) -> None:
        self._windlass, self._directory = windlass, directory
        self._url = windlass.environment["WINDLASS_DATABASE_URL"]
        self._port = free_port()
        self._receiver = self._receive()

    def make_an_endpoint(self) -> None:
        http, url = self._windlass.client.http, f"http://127.0.0.1:{self._port}/steady-0"
        made = http.post("/api/v1/webhooks", json={"url": url, "events": []}).raise_for_status().json()
        Books(self._directory).share("/steady-0", made["secret"])
        subscription = {"events": ["task.completed", "task.cancelled"]}
        http.patch(f"/api/v1/webhooks/{made['webhook_id']}", json=subscription).raise_for_status()
        install_witness(self._url)
        wait_until("the actor is known", lambda: self._answer("POST", "/tasks", json=self._body()), seconds=90)

    def run(self, failpoint: Failpoint) -> bool:
        """Fails unless everything that was told arrived. False where nothing was shown."""
        was_held = True
        if failpoint.place is not None:
            with HeldPlace(self._url, failpoint.place) as held:
                task_id = self._begin(failpoint)
                backend = held.wait_for(f"windlass-{failpoint.who}")
                self._kill(failpoint.who)
                was_held = held.let_go(backend, undone=failpoint.is_undone)
        elif failpoint.name in OF_WEBHOOKS:
            self._windlass.failpoints.kill(failpoint.name)
            task_id = self._begin(failpoint)
            self._windlass.failpoints.wait_until_spent(failpoint.name)
        else:
            task_id = self._begin(failpoint)
            wait_until("a delivery", lambda: ask(self._url, WAITING) or self._is_delivered(task_id), seconds=90)
            self._kill(failpoint.who)
        self._start_again(failpoint.who)
        if failpoint.is_cancelled:
            answered(lambda: self._windlass.client.cancel(task_id).status_code < 500)
        wait_until("it arrives", lambda: self._is_delivered(task_id), seconds=MOST_SECONDS, every=0.2)
        found = list(judge_webhooks(Record(), read_webhooks(self._url, self._directory)))
        assert not found, "; ".join(str(each) for each in found[:3])
        return was_held

    def close(self) -> None:
        self._receiver.kill()
        self._receiver.wait()

    def _begin(self, failpoint: Failpoint) -> str:
        """A task that is about to end; to be cancelled, by somebody who may never be answered."""
        more = {"delay_seconds": 3600} if failpoint.is_cancelled else {}
        task = self._answer("POST", "/tasks", json=self._body(**more))
        assert task is not None
        if failpoint.is_cancelled:
            self._cancelling(str(task["task_id"]))
        return str(task["task_id"])

    def _cancelling(self, task_id: str) -> None:
        address = f"{self._windlass.url}/api/v1/tasks/{task_id}/cancel"
        key = self._windlass.environment["WINDLASS_API_KEY"]
        call = (
            "import sys, urllib.request as web\n"
            "web.urlopen(web.Request(sys.argv[1], method='POST', headers={'Authorization': 'Bearer ' + sys.argv[2]}))"
        )
        with (self._directory / "cancelling").open("wb") as words:
            Popen([sys.executable, "-c", call, address, key], stderr=words)

    def _answer(self, method: str, path: str, **request: Any) -> dict[str, Any] | None:
        answer = self._windlass.client.http.request(method, f"/api/v1{path}", **request)
        found: dict[str, Any] | None = answer.json() if answer.is_success else None
        return found

    def _body(self, **more: Any) -> dict[str, Any]:
        return {"actor": "tell", "payload": {"mark": "told"}, **more}

    def _is_delivered(self, task_id: str) -> bool:
        return bool(ask(self._url, DELIVERED, task_id))

    def _receive(self) -> "Popen[bytes]":
        settings = {"STORM_RECEIVER_PORT": str(self._port), "STORM_RECEIVER_DIRECTORY": str(self._directory)}
        environment = {**self._windlass.environment, **settings}
        return Popen([sys.executable, "-m", "tests.chaos.webhooks.receiver"], cwd=PROJECT, env=environment)

    def _kill(self, who: str) -> None:
        if who == "actors":
            for below in descendants(self._windlass.actors.pid):
                if is_a_worker(below.pid):
                    below.send(signal.SIGKILL)
            return
        process = self._receiver if who == "receiver" else getattr(self._windlass, who)
        process.kill()
        process.wait()

    def _start_again(self, who: str) -> None:
        """A guardian whose workers die again and again lets the next one wait: each time there is a new one."""
        if who == "receiver":
            self._receiver = self._receive()
            return
        if who == "actors":
            self._windlass.actors.terminate()
            self._windlass.actors.wait(60)
        setattr(self._windlass, who, self._windlass.start(who))
        self._windlass.wait_until_answering()


@contextmanager
def a_drill() -> Iterator[Drill]:
    with throw_away_servers() as servers, open_directory() as directory:
        migrate(servers.database_url)
        actors = ("probe", "webhook")
        settings = {
            "WINDLASS_ACTORS": str(TELLER),
            "WINDLASS_QUEUES": "probe.probe,webhook.http,own",
            **Failpoints(directory / "failpoints").environment,
        }
        with a_windlass(
            servers.database_url, servers.amqp_url, directory, config=CONFIG, actors=actors, **settings
        ) as windlass:
            windlass.start_all()
            drill = Drill(windlass, directory)
            try:
                drill.make_an_endpoint()
                yield drill
            finally:
                drill.close()


def play(say: Callable[[str], None]) -> bool:
    return play_each(failpoints(), a_drill, say, what="a delivery", went_well="told once, and taken")
