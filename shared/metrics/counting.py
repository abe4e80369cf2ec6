"""Counts what the store has just committed, in the process that asked for it: there is no other way to end a task."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from windlass.shared.db import Row
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


class New(Protocol):
    """What was submitted, as far as it counts."""

    @property
    def actor(self) -> str: ...

    @property
    def provider(self) -> str: ...


class Ending(Protocol):
    """An attempt's end, as its owner decided."""

    @property
    def claim_token(self) -> Any: ...

    @property
    def error(self) -> dict[str, Any] | None: ...


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
def submitted(tasks: Iterable[New]) -> None:
    for task in tasks:
        _submitted[task.actor, task.provider].inc()


def stored(rows: list[Row]) -> list[Row]:
    _new_tasks(rows)
    return rows


@counted_afterwards
def _new_tasks(rows: list[Row]) -> None:
    """One that found its key taken is none; one whose parent had died has ended in the same moment."""
    for row in rows:
        if row.get("deduplicated"):
            continue
        _submitted[row["actor"], row["provider"]].inc()
        if row["status"] == "dead":
            _finish(row, "dead", row["error"]["type"])


@counted_afterwards
def claims_answered(answers: Iterable[tuple[Any, Row]]) -> None:
    for answer, row in answers:
        if reason := getattr(answer, "reason", None):
            queue = "other" if row["actor"] is None else f"{row['actor']}.{row['provider']}"
            _refused[queue, reason].inc()
        else:
            _started[answer.actor, answer.provider].inc()
            which = "first" if answer.attempt == 1 else "later"
            _waited[answer.actor, answer.provider, which].observe(max(row["waited_seconds"], 0))


@counted_afterwards
def attempts_ended(endings: Iterable[Ending], rows: Iterable[Row]) -> None:
    """Those that ended their task, and the dependents that were buried with it: these have no token."""
    errors = {ending.claim_token: ending.error for ending in endings}
    for row in rows:
        status = row["status"]
        if status not in TERMINAL:
            continue
        if row["claim_token"] is None:
            _finish(row, status, "DependencyFailed")
            continue
        error = errors.get(row["claim_token"])
        _finish(row, status, error["type"] if error else None)
        if status == "completed":
            _end_to_end[row["actor"], row["provider"]].observe(row["age_seconds"])


def stalled(rows: Sequence[Row]) -> list[Row]:
    """Tasks taken back from their workers, which are returned, and the dependents that were buried with them."""
    _taken_back(rows)
    return [row for row in rows if row["worker_id"] is not None]


@counted_afterwards
def _taken_back(rows: Sequence[Row]) -> None:
    for row in rows:
        if row["worker_id"] is None:
            _finish(row, row["status"], "DependencyFailed")
            continue
        _stalls[row["actor"], row["provider"]].inc()
        if row["status"] in TERMINAL:
            _finish(row, row["status"], "WorkerLost")


def expired(rows: Sequence[Row]) -> list[Row]:
    """Tasks too old to start, which are returned, and the dependents that were buried with them."""
    _too_old(rows)
    return [row for row in rows if not row["is_dependent"]]


@counted_afterwards
def _too_old(rows: Sequence[Row]) -> None:
    for row in rows:
        _finish(row, "dead", "DependencyFailed" if row["is_dependent"] else "Expired")


def changed(row: Row) -> Row:
    """What one call revived and ended, counted by Postgres."""
    _revived_and_ended(row)
    return row


@counted_afterwards
def _revived_and_ended(row: Row) -> None:
    for counts in row.get("revived") or ():
        _revived[counts["actor"], counts["provider"]].inc(counts["tasks"])
    ended(row["ended"])


@counted_afterwards
def ended(counted: Iterable[Mapping[str, Any]]) -> None:
    for counts in counted:
        _finish(counts, counts["status"], counts["error_type"], counts["tasks"])


def _finish(row: Any, outcome: str, error_type: str | None, tasks: int = 1) -> None:
    fault = fault_of(error_type) if outcome == "dead" and error_type is not None else "none"
    _finished[row["actor"], row["provider"], outcome, fault].inc(tasks)
