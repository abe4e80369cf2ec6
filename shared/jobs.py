"""The life of an order for paid work at a provider, written once: what is ambiguous is found out, never repeated."""

from dataclasses import dataclass
from enum import StrEnum


class JobState(StrEnum):
    INTENDED = "intended"
    OPEN = "open"
    FETCHING = "fetching"
    COMPLETED = "completed"
    FAILED = "failed"
    REFUSED = "refused"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Move:
    """From where, to where, and whether the provider may be working on it afterwards, so that a slot is held for it."""

    sources: tuple[JobState, ...]
    target: JobState
    keeps_slot: bool

    @property
    def ends(self) -> bool:
        return self.target in ENDED


ENDED = (JobState.COMPLETED, JobState.FAILED, JobState.REFUSED)

MOVES: dict[str, Move] = {
    # The provider has told its id for the job: by its answer, its list or its callback.
    "place": Move((JobState.INTENDED, JobState.UNKNOWN), JobState.OPEN, keeps_slot=True),
    # It certainly does not work on it: it said no, or was never reached.
    "refuse": Move((JobState.INTENDED, JobState.UNKNOWN), JobState.REFUSED, keeps_slot=False),
    # Nobody can tell whether it got the order.
    "lose": Move((JobState.INTENDED,), JobState.UNKNOWN, keeps_slot=True),
    # Its work is done, and the files are on their way to us.
    "fetch": Move((JobState.OPEN, JobState.FETCHING), JobState.FETCHING, keeps_slot=False),
    "complete": Move((JobState.FETCHING,), JobState.COMPLETED, keeps_slot=False),
    "fail": Move((JobState.OPEN, JobState.FETCHING, JobState.UNKNOWN), JobState.FAILED, keeps_slot=False),
}
