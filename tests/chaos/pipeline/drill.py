"""Tasks are brought to places of the pipeline and held there: then something may happen to their worker."""

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.chaos.pipeline.judge import Judge
from tests.support.failpoints.catalogue import OF_THE_LONER, OF_THE_LOOP, OF_THREADS, STOP_HEARD
from tests.support.installation import SERVICES, Windlass
from tests.support.servers.databases import ask
from tests.support.waiting import wait_until

WALKERS = Path(__file__).parent / "walkers.py"
LEASE_SECONDS = 300
BOUND_SECONDS = 90
"""Whoever waited for a lease would take much longer than this."""
GRACE_SECONDS = 40
"""Whom a test lets go late is not taken for deaf."""
SHORT_GRACE_SECONDS = 3
"""Where somebody is to be found deaf."""
AT_WORK, WAITING = 2, 3
"""Of each kind."""
SUSPECTED = "UPDATE tasks SET suspicion = 2 WHERE task_id = ANY ($1::uuid[]) AND status = 'blocked' RETURNING task_id"
STOPPED = "SELECT 1 FROM workers WHERE worker_id = $1 AND state = 'stopped'"

SETTINGS = {
    "WINDLASS_ACTORS": str(WALKERS),
    "WINDLASS_QUEUES": "own",
    "WINDLASS_ACTOR_THREADS": "16",
    "WINDLASS_ASYNC_PLACES": "16",
    "WINDLASS_LEASE_SECONDS": str(LEASE_SECONDS),
    "WINDLASS_STOP_GRACE_SECONDS": str(GRACE_SECONDS),
}

Wanted = tuple[str, Mapping[str, Any]]
"""An actor and its payload."""


@dataclass
class Round:
    """The tasks under way."""

    mark: str
    """A file of this name lets those at work come to their end."""
    culprit: str | None = None
    at_work: list[str] = field(default_factory=list)
    at_work_on_the_loop: list[str] = field(default_factory=list)
    at_places: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    """Those that came last, when all were in their places."""

    @property
    def task_ids(self) -> list[str]:
        """All but the culprit's."""
        return [*self.at_work, *self.at_work_on_the_loop, *self.at_places, *self.waiting]


class Looks:
    """How far apart they were: a worker that is condemned gives its tasks so much time only, and if the machine stood
    still meanwhile, nothing was shown."""

    def __init__(self) -> None:
        self._last = time.monotonic()
        self.longest_pause = 0.0

    def look(self) -> None:
        now = time.monotonic()
        self.longest_pause, self._last = max(self.longest_pause, now - self._last), now


class Drill:
    """One installation, and one round after the other on it."""

    def __init__(self, windlass: Windlass) -> None:
        self.windlass = windlass
        self.client = windlass.client
        self.url = windlass.environment["WINDLASS_DATABASE_URL"]
        self.directory = Path(windlass.environment["PIPELINE_DIRECTORY"])
        self.failpoints = windlass.failpoints
        self.judge = Judge(self.url, self.directory / "books")
        self._rounds = self._gates = 0
        self._grace_seconds: float = GRACE_SECONDS

    def start(self) -> None:
        for service in SERVICES:
            setattr(self.windlass, service, self.windlass.start(service))
        self.windlass.wait_until_answering()
        self.worker()

    # Bringing

    def bring(self, places: Sequence[str], *, culprit: Wanted | None = None) -> Round:
        """One task to each place, some that are at work, and some that nobody has claimed."""
        self._rounds += 1
        under_way = Round(f"round-{self._rounds}")
        self.worker()
        if culprit is not None:
            (under_way.culprit,) = self.submit([culprit], max_retries=0)
            self.wait_until_started(under_way.culprit)
        suspects = self._bring_suspects(places)
        for_now = {"until": under_way.mark}
        under_way.at_work = self.submit([("march", for_now)] * AT_WORK)
        under_way.at_work_on_the_loop = self.submit([("walk", for_now)] * AT_WORK)
        self.wait_until_started(*under_way.at_work, *under_way.at_work_on_the_loop)
        under_way.at_places = [*suspects, *self._bring_attempts(places), *self._bring_calls(places)]
        if STOP_HEARD in places:
            self.failpoints.hold(STOP_HEARD)
        under_way.waiting = self.submit([("march", {}), ("walk", {})] * WAITING)
        return under_way

    def _bring_attempts(self, places: Sequence[str]) -> list[str]:
        """Each is held at the first place where nobody is yet. Who is handed back is the next whom anybody is given."""
        attempts = [place for place in places if place in (*OF_THREADS, *OF_THE_LOOP)]
        for place in attempts:
            self.failpoints.hold(place)
        task_ids = self.submit([("march" if place in OF_THREADS else "walk", {}) for place in attempts], priority=0)
        for place in attempts:
            self.failpoints.wait_until_held(place)
        return task_ids

    def _bring_calls(self, places: Sequence[str]) -> list[str]:
        """In this order: whose end is not written holds up the ends after it, and who asks holds up all that start."""
        task_ids = []
        for step, actor in (("end-", "march"), ("doorbell-", "errand"), ("claim-", "march")):
            for place in [each for each in places if each.startswith(step)]:
                self.failpoints.hold(place)
                task_ids += self.submit([(actor, {})])
                self.failpoints.wait_until_held(place)
        return task_ids

    def _bring_suspects(self, places: Sequence[str]) -> list[str]:
        """One to the place, and one behind it: they run one after the other."""
        alone = [place for place in places if place in OF_THE_LONER]
        for place in alone:
            self.failpoints.hold(place)
        task_ids = self.submit_suspects([("march", {}), ("walk", {})]) if alone else []
        for place in alone:
            self.failpoints.wait_until_held(place)
        return task_ids

    def submit_suspects(self, wanted: Sequence[Wanted]) -> list[str]:
        """As if each had lost its worker twice; until that is written they depend on another, which comes first."""
        self._gates += 1
        gate = f"gate-{self._gates}"
        before = self.submit([("march", {"until": gate})])
        task_ids = self.submit(wanted, depends_on=before)
        assert len(ask(self.url, SUSPECTED, task_ids)) == len(task_ids)
        (self.directory / gate).touch()
        return [*before, *task_ids]

    def submit(self, wanted: Sequence[Wanted], **fields: Any) -> list[str]:
        tasks = [{"actor": actor, "payload": said, **fields} for actor, said in wanted]
        return self.client.submit_many(tasks) if tasks else []

    def wait_until_started(self, *task_ids: str) -> None:
        wait_until("they are at work", lambda: all(self.judge.starts()[each, 1] for each in task_ids))

    # The worker

    def worker(self) -> dict[str, Any]:
        """That which serves queues; beside it there may be one for suspects."""
        (worker,) = wait_until("a worker", lambda: [each for each in self.windlass.workers() if each["queues"]])
        return worker

    def workers_at(self, places: Sequence[str]) -> list[dict[str, Any]]:
        """Those to which something is to happen."""
        loners = [each for each in self.windlass.workers() if not each["queues"]]
        return [self.worker(), *(loners if set(places) & set(OF_THE_LONER) else [])]

    def have_a_worker(self, grace_seconds: float) -> None:
        if grace_seconds != self._grace_seconds:
            self.exchange_the_worker(grace_seconds)

    def exchange_the_worker(self, grace_seconds: float) -> None:
        """The next one is there before the last one goes: what no worker serves cannot be submitted."""
        before = self.windlass.actors
        self.start_a_worker(grace_seconds)
        self.worker()
        before.terminate()
        assert before.wait(BOUND_SECONDS) == 0

    def start_a_worker(self, grace_seconds: float = GRACE_SECONDS) -> None:
        self.windlass.actors = self.windlass.start("actors", WINDLASS_STOP_GRACE_SECONDS=f"{grace_seconds:g}")
        self._grace_seconds = grace_seconds

    @contextmanager
    def until_it_says(self, words: str, looks: Looks | None = None, *, times: int = 1) -> Iterator[None]:
        before, looks = self.windlass.log().count(words), looks or Looks()
        yield

        def is_said() -> bool:
            looks.look()
            return self.windlass.log().count(words) >= before + times

        wait_until(f"it says: {words}", is_said)

    def wait_until_it_has_left(self, worker_id: str, looks: Looks | None = None) -> None:
        looks = looks or Looks()

        def has_left() -> bool:
            looks.look()
            return bool(ask(self.url, STOPPED, worker_id))

        wait_until("it has left", has_left, seconds=BOUND_SECONDS)

    # Judging

    def finish(self, under_way: Round, *, interrupts: int, stalls: int = 0) -> None:
        """All have to be done long before a lease could be over."""
        task_ids = under_way.task_ids
        wait_until("all have completed", lambda: self.judge.have_completed(task_ids), seconds=BOUND_SECONDS)
        faults = self.judge.faults(task_ids, interrupts=interrupts, stalls=stalls)
        assert not faults, "\n".join(faults)
