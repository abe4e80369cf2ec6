"""Counts what the store has just committed, in the process that asked for it: there is no other way to end a task."""

from collections.abc import Iterable
from typing import Any, Protocol, TypedDict, TypeVar
from uuid import UUID

from windlass.shared.errors import fault_of
from windlass.shared.metrics.declaring import Kept
from windlass.shared.metrics.seam import counted_afterwards
from windlass.shared.metrics.tasks import (
    ATTEMPTS_STARTED,
    CLAIMS_REFUSED,
    END_TO_END_SECONDS,
    FINISHED,
    QUEUE_WAIT_SECONDS,
    REVIVED,
    STALLS,
    SUBMITTED,
)

_submitted, _finished, _revived, _stalls = Kept(SUBMITTED), Kept(FINISHED), Kept(REVIVED), Kept(STALLS)
_started, _waited, _refused = Kept(ATTEMPTS_STARTED), Kept(QUEUE_WAIT_SECONDS), Kept(CLAIMS_REFUSED)
_end_to_end = Kept(END_TO_END_SECONDS)

TERMINAL = {"completed", "dead", "cancelled"}


class OfAQueue(Protocol):
    """What there is to say about a task, as far as it counts."""

    @property
    def actor(self) -> str: ...

    @property
    def provider(self) -> str: ...


class Stored(OfAQueue, Protocol):
    """A new task: one whose parent had died has ended in the same moment."""

    @property
    def status(self) -> str: ...

    @property
    def error(self) -> dict[str, Any] | None: ...


class Ending(Protocol):
    """An attempt's end, as its owner decided."""

    @property
    def claim_token(self) -> UUID: ...

    @property
    def error(self) -> dict[str, Any] | None: ...


class Ended(OfAQueue, Protocol):
    """What has become of an attempt's task, or of a dependent that was buried with it: that one has no token."""

    @property
    def claim_token(self) -> UUID | None: ...

    @property
    def status(self) -> str: ...

    @property
    def age_seconds(self) -> float | None: ...


class Stalled(OfAQueue, Protocol):
    """A task that was taken back from its worker, or a dependent that was buried with it: that one has none."""

    @property
    def worker_id(self) -> str | None: ...

    @property
    def status(self) -> str: ...


class Expired(OfAQueue, Protocol):
    """A task that was too old to start, or a dependent that was buried with it."""

    @property
    def is_dependent(self) -> bool: ...


class Counts(TypedDict):
    """So many tasks that one call has changed alike, counted by Postgres (`counts_of.sql`)."""

    actor: str
    provider: str
    status: str
    error_type: str | None
    tasks: int


AStalled = TypeVar("AStalled", bound=Stalled)
AnExpired = TypeVar("AnExpired", bound=Expired)

ENDS = (("completed", "none"), ("dead", "user"), ("dead", "provider"), ("dead", "system"), ("cancelled", "none"))


def begin(queues: Iterable[str]) -> None:
    """Everything that may happen at these queues has happened 0 times: a counter that first appears as 1 has, to
    Prometheus, not grown."""
    for queue in queues:
        actor, _, provider = queue.partition(".")
        for kept in (_submitted, _revived, _stalls, _started):
            kept[actor, provider].inc(0)
        for outcome, fault in ENDS:
            _finished[actor, provider, outcome, fault].inc(0)


@counted_afterwards
def submitted(tasks: Iterable[OfAQueue]) -> None:
    for task in tasks:
        _submitted[task.actor, task.provider].inc()


@counted_afterwards
def stored(tasks: Iterable[Stored]) -> None:
    for task in tasks:
        _submitted[task.actor, task.provider].inc()
        if task.status == "dead" and task.error is not None:
            _finish(task, "dead", task.error["type"])


def claim_refused(actor: str | None, provider: str | None, reason: str) -> None:
    """Of a task that nobody knows, neither is known."""
    _refused["other" if actor is None else f"{actor}.{provider}", reason].inc()


def attempt_started(task: OfAQueue, attempt: int, *, waited_seconds: float) -> None:
    _started[task.actor, task.provider].inc()
    which = "first" if attempt == 1 else "later"
    _waited[task.actor, task.provider, which].observe(max(waited_seconds, 0))


@counted_afterwards
def attempts_ended(endings: Iterable[Ending], outcomes: Iterable[Ended]) -> None:
    """Those that ended their task, and the dependents that were buried with it."""
    errors = {ending.claim_token: ending.error for ending in endings}
    for task in outcomes:
        status = task.status
        if status not in TERMINAL:
            continue
        if task.claim_token is None:
            _finish(task, status, "DependencyFailed")
            continue
        error = errors.get(task.claim_token)
        _finish(task, status, error["type"] if error else None)
        if status == "completed" and task.age_seconds is not None:
            _end_to_end[task.actor, task.provider].observe(task.age_seconds)


@counted_afterwards
def stalled(tasks: Iterable[AStalled]) -> None:
    """Tasks that were taken back, and the dependents that were buried with them: these have no worker."""
    for task in tasks:
        if task.worker_id is None:
            _finish(task, task.status, "DependencyFailed")
            continue
        _stalls[task.actor, task.provider].inc()
        if task.status in TERMINAL:
            _finish(task, task.status, "WorkerLost")


@counted_afterwards
def expired(tasks: Iterable[AnExpired]) -> None:
    for task in tasks:
        _finish(task, "dead", "DependencyFailed" if task.is_dependent else "Expired")


@counted_afterwards
def revived(counted: Iterable[Counts]) -> None:
    for counts in counted:
        _revived[counts["actor"], counts["provider"]].inc(counts["tasks"])


def ended(counted: Iterable[Counts]) -> None:
    for each in counted:
        _count_end(each["actor"], each["provider"], each["status"], each["error_type"], each["tasks"])


def _finish(task: OfAQueue, outcome: str, error_type: str | None) -> None:
    _count_end(task.actor, task.provider, outcome, error_type, 1)


def _count_end(actor: str, provider: str, outcome: str, error_type: str | None, tasks: int) -> None:
    fault = fault_of(error_type) if outcome == "dead" and error_type is not None else "none"
    _finished[actor, provider, outcome, fault].inc(tasks)
