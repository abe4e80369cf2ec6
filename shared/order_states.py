"""The life of an order for paid work at a provider, written once: what is ambiguous is found out, never repeated."""

from dataclasses import dataclass
from enum import StrEnum


class OrderState(StrEnum):
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

    sources: tuple[OrderState, ...]
    target: OrderState
    keeps_slot: bool

    @property
    def ends(self) -> bool:
        return self.target in ENDED


ENDED = (OrderState.COMPLETED, OrderState.FAILED, OrderState.REFUSED)

MOVES: dict[str, Move] = {
    # The provider has told its id for the job: by its answer, its list or its callback.
    "place": Move((OrderState.INTENDED, OrderState.UNKNOWN), OrderState.OPEN, keeps_slot=True),
    # It certainly does not work on it: it said no, or was never reached.
    "refuse": Move((OrderState.INTENDED, OrderState.UNKNOWN), OrderState.REFUSED, keeps_slot=False),
    # Nobody can tell whether it got the order. If it calls back after all, when the task has died of that, the order
    # is `intended` again (`revive_lost_order` in `shared/store/sql/attempts/move_order.sql`): the next attempt asks for
    # it.
    "lose": Move((OrderState.INTENDED,), OrderState.UNKNOWN, keeps_slot=True),
    # Its work is done, and the files are on their way to us.
    "fetch": Move((OrderState.OPEN, OrderState.FETCHING), OrderState.FETCHING, keeps_slot=False),
    "complete": Move((OrderState.FETCHING,), OrderState.COMPLETED, keeps_slot=False),
    "fail": Move((OrderState.OPEN, OrderState.FETCHING, OrderState.UNKNOWN), OrderState.FAILED, keeps_slot=False),
}
