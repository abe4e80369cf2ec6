"""The state machine, written once: the guards, the CHECK constraint, the diagram and the labels come from here."""

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """The seven words, the same in the database, the API, the page, the metrics and the logs."""

    BLOCKED = "blocked"
    QUEUED = "queued"
    RUNNING = "running"
    RETRYING = "retrying"
    COMPLETED = "completed"
    DEAD = "dead"
    CANCELLED = "cancelled"


class Lane(StrEnum):
    """`fresh` has never failed; `retry` has, and gets the smaller share, so that a storm cannot starve new work."""

    FRESH = "fresh"
    RETRY = "retry"


@dataclass(frozen=True)
class Transition:
    """A named way from one of its sources to one of its targets, and when it is taken."""

    name: str
    sources: tuple[State, ...]
    targets: tuple[State, ...]
    when: str


WAITING = (State.QUEUED, State.RETRYING)
TERMINAL = (State.COMPLETED, State.DEAD, State.CANCELLED)
LIVE = tuple(state for state in State if state not in TERMINAL)

SUBMIT = Transition("submit", (), (State.QUEUED, State.BLOCKED), "accepted and durably stored")
UNBLOCK = Transition("unblock", (State.BLOCKED,), (State.QUEUED,), "the last dependency completed")
CLAIM = Transition("claim", WAITING, (State.RUNNING,), "a worker takes it, everything checked again")
COMPLETE = Transition("complete", (State.RUNNING,), (State.COMPLETED,), "the result is stored, the slot freed")
RETRY = Transition("retry", (State.RUNNING,), (State.RETRYING,), "a transient error, retries left, young enough")
BURY = Transition("bury", LIVE, (State.DEAD,), "permanent error, retries used up, expired, or a dependency failed")
STALL = Transition("stall", (State.RUNNING,), (State.RETRYING, State.DEAD), "the lease expired")
INTERRUPT = Transition("interrupt", (State.RUNNING,), (State.QUEUED,), "its worker was told to stop; no retry is used")
CANCEL = Transition("cancel", LIVE, (State.CANCELLED,), "asked for; while running, once the work has stopped")
REVIVE = Transition("revive", (State.DEAD, State.CANCELLED), (State.QUEUED, State.BLOCKED), "by hand or in bulk")

TRANSITIONS = {
    transition.name: transition
    for transition in (SUBMIT, UNBLOCK, CLAIM, COMPLETE, RETRY, BURY, STALL, INTERRUPT, CANCEL, REVIVE)
}
