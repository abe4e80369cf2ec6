"""The states of a workflow: a pure function of how many of its tasks are what, in Python and in SQL."""

from dataclasses import dataclass
from enum import StrEnum


class WorkflowStatus(StrEnum):
    """The five words, the same in the database, the API, the page, the metrics and the logs."""

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    ESCALATED = "escalated"
    CANCELLED = "cancelled"


ENDED = (WorkflowStatus.COMPLETED, WorkflowStatus.FAILED, WorkflowStatus.CANCELLED)
"""Nothing of it runs or waits; an escalated one waits for a person."""


@dataclass(frozen=True)
class Counts:
    """What a workflow's status follows from. `failures` are the entries into `dead` since the last resume, without
    those that only follow from another's."""

    live: int = 0
    completed: int = 0
    dead: int = 0
    cancelled: int = 0
    failures: int = 0
    failure_threshold: int | None = None
    cancel_requested: bool = False


def status_of(counts: Counts) -> WorkflowStatus:
    """The first of these that holds."""
    if counts.cancel_requested and counts.live == 0:
        return WorkflowStatus.CANCELLED
    threshold = counts.failure_threshold
    if not counts.cancel_requested and threshold is not None and counts.failures >= threshold:
        return WorkflowStatus.ESCALATED
    if counts.live > 0:
        return WorkflowStatus.RUNNING
    if counts.dead > 0:
        return WorkflowStatus.FAILED
    if counts.cancelled > 0:
        return WorkflowStatus.CANCELLED
    return WorkflowStatus.COMPLETED


STATUS_OF_COUNTS = (
    "CASE WHEN cancel_requested AND live = 0 THEN 'cancelled'"
    " WHEN NOT cancel_requested AND failures >= failure_threshold THEN 'escalated'"
    " WHEN live > 0 THEN 'running'"
    " WHEN dead > 0 THEN 'failed'"
    " WHEN cancelled > 0 THEN 'cancelled'"
    " ELSE 'completed' END"
)
"""The same for Postgres, which keeps it in a generated column: no statement can make a status that does not follow. A
test holds the two together over all small counts."""


@dataclass(frozen=True)
class Change:
    """A named way from one status to another, and when it is taken."""

    name: str
    sources: tuple[WorkflowStatus, ...]
    targets: tuple[WorkflowStatus, ...]
    when: str


RUNNING, COMPLETED, FAILED, ESCALATED, CANCELLED = WorkflowStatus

CHANGES = (
    Change("submit", (), (RUNNING,), "accepted and durably stored, with all its tasks"),
    Change("complete", (RUNNING,), (COMPLETED,), "the last task ended, and all completed"),
    Change("fail", (RUNNING,), (FAILED,), "the last task ended, and one is dead"),
    Change("escalate", (RUNNING, COMPLETED, FAILED), (ESCALATED,), "as many tasks have failed as it tolerates"),
    Change(
        "resume", (ESCALATED,), (RUNNING, COMPLETED, FAILED, CANCELLED), "a person says so; failures count from 0 again"
    ),
    Change(
        "cancel", (RUNNING, ESCALATED), (CANCELLED,), "asked for, and the last task has ended; or all that was left"
    ),
    Change(
        "revive",
        (COMPLETED, FAILED, CANCELLED),
        (RUNNING,),
        "a task of it lives again, or one was added; not after a cancel",
    ),
)
"""As its events are called."""
