"""One storm over an installation: the load, the faults by their plan, the calm after it, and the judge's word."""

import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from tests.chaos.faults.carrying_out import Faults
from tests.chaos.faults.plan import Planned
from tests.chaos.judge.checker import CRITERIA, Violation, judge, settle, tell
from tests.chaos.judge.processes import ProcessWatch
from tests.chaos.site.configuration import SETTINGS
from tests.chaos.site.installation import Installation
from tests.support.installation import SHORT_LEASES
from tests.support.servers.databases import ask
from windlass.services.actors.worker.ending.retries import delay_after
from windlass.shared.broker import HEARTBEAT_SECONDS
from windlass.shared.db import AWAY_OR_BUSY
from windlass.shared.errors import NetworkTimeout, ServiceUnavailable, SubprocessFailed, WorkerLost
from windlass.shared.retry_delays import BUILT_IN

TICK_SECONDS = 0.05
LOOK_SECONDS = 0.3
PROGRESS_SECONDS = 15
OVERDUE_SECONDS = 90
"""A fault that is under way for so long after the last one began is given up."""
RETRIES = 3
TELL_AT_MOST = 12


def bound_seconds() -> float:
    """How long after the last fault everything must have ended: four times the longest wait that one of its traces can
    cause, which is a lease, the silence after which a connection to RabbitMQ counts as dead, or the last backoff."""
    backoffs = [
        delay_after(error("lost"), RETRIES - 1) * (1 + BUILT_IN.jitter)
        for error in (ServiceUnavailable, NetworkTimeout, WorkerLost, SubprocessFailed)
    ]
    pauses = [float(value) for name, value in SETTINGS.items() if name.endswith("_SECONDS")]
    return 4 * max(lease_seconds(), HEARTBEAT_SECONDS, *backoffs, *pauses)


def lease_seconds() -> float:
    return float(SHORT_LEASES["WINDLASS_LEASE_SECONDS"])


@dataclass(frozen=True)
class Verdict:
    violations: Sequence[Violation]
    stories: Sequence[str]
    """For each violation what is known about its task."""


class Load(Protocol):
    """Clients that begin when they are told to, and are sent home when nobody waits for them any more."""

    @property
    def is_over(self) -> bool: ...

    def start(self) -> None: ...

    def finish(self, within: float) -> bool: ...


class Storm:
    """To be run on the main thread: the processes that it starts again are tied to it."""

    def __init__(
        self,
        installation: Installation,
        plan: Sequence[Planned],
        loads: Sequence[Load],
        *,
        seconds: float,
        say: Callable[[str], None] = print,
    ) -> None:
        self._installation = installation
        self._plan = plan
        self._seconds = seconds
        self._say = say
        self._faults = Faults(installation)
        self._tally = Tally(installation.database_url)
        self._watch = ProcessWatch(installation.record)
        self._loads = loads
        self._began = 0.0

    def run(self) -> Verdict:
        installation = self._installation
        installation.on_unexpected_end = self._line
        installation.start()
        self._began = time.monotonic()
        self._tally.start()
        self._watch.start()
        for load in self._loads:
            load.start()
        try:
            self._rage()
            self._calm_down()
            return self._judge()
        finally:
            self._watch.stop()
            self._tally.stop()

    def _rage(self) -> None:
        waiting, said_at = list(enumerate(self._plan, start=1)), 0.0
        while waiting or time.monotonic() < self._began + self._seconds or self._faults.under_way:
            spent = time.monotonic() - self._began
            while waiting and waiting[0][1].at <= spent:
                number, planned = waiting.pop(0)
                self._line(f"fault {number:2d}  {planned.words}")
                self._faults.begin(number, planned)
                said_at = spent
            if spent - said_at > PROGRESS_SECONDS:
                self._line("…")
                said_at = spent
            if spent > self._seconds + OVERDUE_SECONDS:
                break
            self._installation.keep()
            time.sleep(TICK_SECONDS)

    def _calm_down(self) -> None:
        """Everything is mended, and nobody does harm any more; what is owed has to be paid within the bound."""
        self._installation.mend()
        self._line(f"calm: all is mended; everything has to end within {bound_seconds():.0f} s")
        while not all(load.is_over for load in self._loads) and time.time() < self._deadline():
            self._keep_for(LOOK_SECONDS)
        for load in self._loads:
            load.finish(within=0)
        left = max(0.0, self._deadline() - time.time())
        settling = threading.Thread(
            target=settle,
            args=(self._installation.database_url,),
            kwargs={"within": left},
            name="settling",
            daemon=True,
        )
        settling.start()
        while settling.is_alive():
            self._keep_for(LOOK_SECONDS)
        self._line("settled")

    def _deadline(self) -> float:
        """By the wall clock. Clients that were held up submit after the last fault, too, and theirs is as much time."""
        record = self._installation.record
        moments = [
            *(fault.ended_at for fault in record.faults),
            *(accepted.at for accepted in list(record.accepted.values())),
            *(revived.at for revived in record.revived),
            *(call.done_at for call in list(record.projects.calls)),
            *(call.done_at for call in list(record.workflows.calls)),
            *(call.done_at for call in list(record.webhooks.calls)),
            *(call.done_at for call in list(record.schedules.calls)),
        ]
        return max(moments, default=time.time()) + bound_seconds()

    def _keep_for(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._installation.keep()
            time.sleep(TICK_SECONDS)

    def _judge(self) -> Verdict:
        installation = self._installation
        record = installation.record
        record.books = {name: installation.fake.books(name) for name in ("openrouter", "leonardo", "midjourney")}
        url = installation.database_url
        violations = judge(record, url, bound_seconds=bound_seconds(), lease_seconds=lease_seconds())
        for failure in self._faults.failures:
            self._say(f"a fault could not be carried out as planned: {failure}")
        for oddity in record.oddities[:TELL_AT_MOST]:
            self._say(f"a client was surprised: {oddity}")
        for line in table(violations):
            self._say(line)
        stories = [tell(violation, record, url) for violation in of_each_kind(violations)[:TELL_AT_MOST]]
        return Verdict(violations, stories)

    def _line(self, words: str) -> None:
        spent = time.monotonic() - self._began if self._began else 0.0
        self._say(f"{spent:5.0f} s  {self._tally.words}  {words}")


def of_each_kind(violations: Sequence[Violation]) -> list[Violation]:
    """The first of every criterion, then the second of every one: what is told of few is told of all."""
    seen: Counter[int] = Counter()
    ranked = []
    for violation in violations:
        ranked.append((seen[violation.criterion], violation))
        seen[violation.criterion] += 1
    return [violation for _, violation in sorted(ranked, key=lambda each: each[0])]


def table(violations: Sequence[Violation]) -> list[str]:
    counts = Counter(violation.criterion for violation in violations)
    return [f"  {counts[number]:5d}  {criterion}" for number, criterion in enumerate(CRITERIA, start=1)]


class Tally:
    """How many tasks there are and have ended, as last seen: Postgres may be away."""

    def __init__(self, database_url: str) -> None:
        self.words = "    0 of     0 finished"
        self._database_url = database_url
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="tally", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopped.set()
        self._thread.join()

    def _keep(self) -> None:
        while not self._stopped.wait(1):
            with suppress(*AWAY_OR_BUSY):
                row = ask(self._database_url, "SELECT count(completed_at) AS ended, count(*) AS all FROM tasks")[0]
                self.words = f"{row['ended']:5d} of {row['all']:5d} finished"
