"""The life of a project's queue, of its runs and of its items, written once: the guards, the CHECK constraints and the
diagram come from here."""

from dataclasses import dataclass
from enum import StrEnum


class QueueState(StrEnum):
    IDLE = "idle"
    RUNNING = "running"
    STOPPING = "stopping"


class RunState(StrEnum):
    RUNNING = "running"
    COMPLETED = "completed"
    DEAD = "dead"
    CANCELLED = "cancelled"
    WITHDRAWN = "withdrawn"
    LOST = "lost"


class ItemState(StrEnum):
    """`running` is never stored: it is what a bound item is called once a worker has claimed its task, and a claim
    writes nothing but tasks."""

    WAITING = "waiting"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class Mode(StrEnum):
    SINGLE = "single"
    LOOP = "loop"


class StopReason(StrEnum):
    FINISHED = "finished"
    STOPPED = "stopped"
    FORCED = "forced"
    FAILED = "failed"


class OnFailure(StrEnum):
    STOP = "stop"
    CONTINUE = "continue"


@dataclass(frozen=True)
class Change:
    """A named way from one of its sources to its target, and when it is taken."""

    name: str
    sources: tuple[StrEnum, ...]
    target: StrEnum
    when: str


def _by_name(*changes: Change) -> dict[str, Change]:
    return {change.name: change for change in changes}


BUSY = (QueueState.RUNNING, QueueState.STOPPING)
STORED = tuple(state for state in ItemState if state is not ItemState.RUNNING)

QUEUE = _by_name(
    Change("start", (QueueState.IDLE,), QueueState.RUNNING, "somebody asks for a run, or revives the task of one"),
    Change("advance", (QueueState.RUNNING,), QueueState.RUNNING, "a run of a loop has ended, and an item waits"),
    Change("stop", (QueueState.RUNNING,), QueueState.STOPPING, "asked to, while a worker has the run's task"),
    Change("force", BUSY, QueueState.STOPPING, "asked to, and everything of the run is to be cancelled"),
    Change("finish", BUSY, QueueState.IDLE, "no run is open, and none is to follow"),
)
RUN = _by_name(
    Change("open", (), RunState.RUNNING, "its task is submitted, or was revived"),
    Change("complete", (RunState.RUNNING,), RunState.COMPLETED, "its task has completed"),
    Change("bury", (RunState.RUNNING,), RunState.DEAD, "its task has died, retries and all"),
    Change("cancel", (RunState.RUNNING,), RunState.CANCELLED, "its task was cancelled: by hand, or by force"),
    Change("withdraw", (RunState.RUNNING,), RunState.WITHDRAWN, "stopped before any worker had claimed its task"),
    Change("lose", (RunState.RUNNING,), RunState.LOST, "its task is not there any more, after a restore"),
)
ITEM = _by_name(
    Change("add", (), ItemState.WAITING, "put at the end of the backlog"),
    Change("fulfil", (ItemState.WAITING, ItemState.FAILED), ItemState.DONE, "its run has completed"),
    Change("fail", (ItemState.WAITING, ItemState.FAILED), ItemState.FAILED, "its run has died, was cancelled or lost"),
    Change("return", (ItemState.WAITING, ItemState.FAILED), ItemState.WAITING, "its run was withdrawn: it is first"),
    Change("skip", (ItemState.WAITING, ItemState.FAILED, ItemState.SKIPPED), ItemState.SKIPPED, "asked to"),
    Change("requeue", STORED, ItemState.WAITING, "by hand where it stands, or in bulk at the head"),
)
