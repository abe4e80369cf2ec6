"""`SCENE=failpoints make chaos`: a chain of real work, once for each place of a list at which somebody is killed with
-9, and paid for once each time.

The worker has places of its own, between an order and what is noted of it. For all others a trigger makes whoever comes
to a row wait; it is killed there, and what it had begun is either undone or committed without anybody hearing of it.
"""

import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import httpx

from tests.acceptance.conftest import a_windlass
from tests.chaos.drills import play_each
from tests.chaos.faults.carrying_out import is_a_worker
from tests.chaos.workflows.held_place import HeldPlace, Place
from tests.support.failpoints.arming import Failpoints
from tests.support.failpoints.catalogue import OF_MEDIA
from tests.support.installation import Windlass
from tests.support.providers.fake_providers import FakeProviders, fake_providers
from tests.support.servers.databases import migrate
from tests.support.servers.private_servers import open_directory, throw_away_servers
from tests.support.waiting import wait_until
from tests.support.workflows.chain import ACTORS, CONFIG, PAID_STEPS, Chain, was_paid_once
from windlass.shared.process.procfs import descendants

RESTS_SECONDS = 0.3
CALLED = {"actors": "worker"}
UNDONE, UNHEARD = "undone", "committed and not heard"
MOST_SECONDS = 150


@dataclass(frozen=True)
class Failpoint:
    """Who is killed where: at a place of the worker's own, or in a transaction, which is then undone or not."""

    name: str
    who: str
    place: Place | None = None
    is_undone: bool = True


def _events(type_: str, key: str) -> Place:
    return Place("task_events", "INSERT", f"NEW.type = '{type_}'", key)


EITHER_WAY = (True, False)
SUBMITTED = Place("tasks", "INSERT", "NEW.workflow_key = 'pictures[1]'")
EXPANDED = Place("barriers", "UPDATE", "OLD.members IS NULL AND NEW.members IS NOT NULL")
COUNTED = Place("workflows", "UPDATE", "OLD.completed = 0 AND NEW.completed > 0")
HANDLED = Place("outbox", "DELETE", "OLD.feature = 'workflow' AND OLD.status = 'completed'")
CLAIMED = ("summary", "pictures[1]", "review", "last")
COMPLETED = {
    "points": EITHER_WAY,
    "pictures[2]": EITHER_WAY,
    "review": EITHER_WAY,
    # A chat whose answer is lost before it was stored is asked again: that is paid for twice, and nobody promises more.
    "summary": (False,),
    "last": (False,),
}
PLACES: tuple[tuple[str, str, Place, tuple[bool, ...]], ...] = (
    ("stores the workflow", "api", Place("workflows", "INSERT", "true"), EITHER_WAY),
    ("stores the approval", "api", _events("approve", "last"), EITHER_WAY),
    ("submits a task of the list", "orchestrator", SUBMITTED, (True,)),
    ("has submitted all tasks of the list", "orchestrator", EXPANDED, EITHER_WAY),
    ("counts the workflow", "orchestrator", COUNTED, EITHER_WAY),
    ("deletes handled rows", "orchestrator", HANDLED, EITHER_WAY),
    *((f"claims {key}", "actors", _events("claim", key), EITHER_WAY) for key in CLAIMED),
    *((f"completes {key}", "actors", _events("complete", key), ways) for key, ways in COMPLETED.items()),
)


def failpoints() -> list[Failpoint]:
    """The list, as it is printed."""
    of_transactions = [
        Failpoint(f"{CALLED.get(who, who)} {what}, {UNDONE if undone else UNHEARD}", who, place, undone)
        for what, who, place, ways in PLACES
        for undone in ways
    ]
    return [
        *(Failpoint(name, "actors") for name in OF_MEDIA),
        *of_transactions,
        Failpoint("dispatcher when the workflow is submitted", "dispatcher"),
    ]


class Drill:
    """One installation, and one chain after the other on it."""

    def __init__(self, windlass: Windlass, fake: FakeProviders) -> None:
        self._windlass = windlass
        self._fake = fake
        self._url = windlass.environment["WINDLASS_DATABASE_URL"]

    def run(self, failpoint: Failpoint) -> bool:
        """Fails unless the chain came to its end, and each of its steps was paid for once. False where nothing was
        shown, because who was to be killed had gone by then."""
        chain, was_held = PatientChain(self._windlass.client, self._fake), True
        with ThreadPoolExecutor(1) as threads:
            if failpoint.place is not None:
                with HeldPlace(self._url, failpoint.place) as held:
                    going_on = threads.submit(chain.go_through)
                    backend = held.wait_for(f"windlass-{failpoint.who}")
                    self._kill(failpoint.who)
                    was_held = held.let_go(backend, undone=failpoint.is_undone)
            elif failpoint.name in OF_MEDIA:
                self._windlass.failpoints.kill(failpoint.name)
                going_on = threads.submit(chain.go_through)
                self._windlass.failpoints.wait_until_spent(failpoint.name)
            else:
                going_on = threads.submit(chain.go_through)
                wait_until("it is submitted", lambda: chain.workflow_id)
                self._kill(failpoint.who)
            self._start_again(failpoint.who)
            going_on.result(MOST_SECONDS)
        if was_held:
            assert chain.paid() == Counter(PAID_STEPS), f"paid for: {dict(chain.paid())}"
            was_paid_once(chain)
        return was_held

    def _kill(self, who: str) -> None:
        process = getattr(self._windlass, who)
        if who != "actors":
            process.kill()
            process.wait()
            return
        for below in descendants(process.pid):
            if is_a_worker(below.pid):
                below.send(signal.SIGKILL)

    def _start_again(self, who: str) -> None:
        """A guardian whose workers die again and again lets the next one wait: each time there is a new one."""
        if who == "actors":
            self._windlass.actors.terminate()
            self._windlass.actors.wait(60)
        setattr(self._windlass, who, self._windlass.start(who))


class PatientChain(Chain):
    """Of a client that is cut off, and asks again; under a key, so that it is the same one."""

    def go_through(self) -> None:
        answered(self.submit)
        answered(self.wait_for_the_question)
        answered(self.approve)
        answered(self.finished)

    def wait_for_the_question(self) -> Any:
        """Without a GET of the workflow: the api would count it before the orchestrator does."""
        return wait_until("somebody is asked", self.questions, seconds=MOST_SECONDS)[0]

    def submit(self) -> Any:
        answer = self._client.http.post("/api/v1/workflows", json=self.body(), headers={"Idempotency-Key": self.mark})
        assert answer.status_code in {200, 201}, answer.text
        self.workflow_id = answer.json()["workflow_id"]
        return answer.json()

    def approve(self, comment: str = "fine") -> Any:
        """What was decided before the answer was lost is decided."""
        if not self.questions():
            return None
        return super().approve(comment)


def answered(call: Callable[[], Any]) -> Any:
    until = time.monotonic() + MOST_SECONDS
    while True:
        try:
            return call()
        except (httpx.TransportError, httpx.HTTPStatusError):
            if time.monotonic() > until:
                raise
            time.sleep(RESTS_SECONDS)


@contextmanager
def a_drill() -> Iterator[Drill]:
    with throw_away_servers() as servers, open_directory() as directory, fake_providers(directory) as fake:
        migrate(servers.database_url)
        settings = {
            "WINDLASS_FAKE_PROVIDERS_URL": fake.url,
            "WINDLASS_ABANDONED_JOB_SECONDS": "6",
            **Failpoints(directory / "failpoints").environment,
        }
        with a_windlass(
            servers.database_url, servers.amqp_url, directory, config=CONFIG, actors=ACTORS, **settings
        ) as windlass:
            windlass.start_all()
            yield Drill(windlass, fake)


def play(say: Callable[[str], None]) -> bool:
    return play_each(failpoints(), a_drill, say, what="a chain of real work", went_well="paid once each")
