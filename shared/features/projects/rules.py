"""What follows the end of a run, and where an item belongs: pure functions."""

from collections.abc import Collection
from decimal import ROUND_DOWN, Context, Decimal

from windlass.shared.project_states import BUSY, Mode, OnFailure, QueueState, RunState, StopReason
from windlass.shared.states import TERMINAL

GAP = 1024
"""Between two items that were added to the backlog one after the other."""

LONGEST_PLACE = 200
"""Decimals of a position, after which all positions are assigned again."""

EXACT = Context(prec=20_000)
"""No operation on positions may round."""

CHANGE_OF_RUN = {
    RunState.COMPLETED: "complete",
    RunState.DEAD: "bury",
    RunState.CANCELLED: "cancel",
    RunState.WITHDRAWN: "withdraw",
    RunState.LOST: "lose",
}

CHANGE_OF_ITEM = {RunState.COMPLETED: "fulfil", RunState.WITHDRAWN: "return"}
"""Of the run's item, by the run's end. Every other end fails it."""

LOST = {
    "type": "Lost",
    "kind": "permanent",
    "message": "the task of the run does not exist any more",
    "details": None,
    "stack_trace": None,
    "attempt": 0,
}


def end_of_run(*, life: int, task_status: str | None, task_life: int | None) -> RunState | None:
    """How an open run has ended; none while its task is alive. A run is one life of its task."""
    if task_status is None or task_life != life:
        return RunState.LOST
    return RunState(task_status) if task_status in TERMINAL else None


def stop_reason(
    end: RunState, *, state: str, is_forced: bool, mode: str, on_failure: str, has_next: bool
) -> StopReason | None:
    """Why the queue stops after this end of its run; none if the next run starts. It starts only if the project runs,
    loops, and no stop was requested."""
    if is_forced:
        return StopReason.FORCED
    if state == QueueState.STOPPING or end == RunState.CANCELLED:
        return StopReason.STOPPED
    if end == RunState.LOST or (end == RunState.DEAD and (mode == Mode.SINGLE or on_failure == OnFailure.STOP)):
        return StopReason.FAILED
    if mode == Mode.SINGLE or not has_next:
        return StopReason.FINISHED
    return None


def refusal_to_start(*, state: str, is_archived: bool) -> str | None:
    """Why a project cannot start, whatever its backlog is."""
    if state in BUSY:
        return "queue-already-running"
    return "project-archived" if is_archived else None


def refusal_of_item(*, item_state: str | None, is_named: bool) -> str | None:
    """Why a project cannot start with this item; `item_state` is none if there is no such item."""
    if item_state is None:
        return "item-not-found" if is_named else "backlog-empty"
    return None if item_state == "waiting" else "item-not-waiting"


def place_between(low: Decimal, high: Decimal) -> Decimal:
    """The shortest fraction near the middle of two positions: the middle itself would grow by a digit each time."""
    middle = EXACT.divide(EXACT.add(low, high), Decimal(2))
    digits = 0
    while True:
        place = middle.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_DOWN, context=EXACT)
        if low < place < high:
            return place
        digits += 1


def place_beside(near: Decimal, far: Decimal | None, *, is_before: bool) -> Decimal:
    """The position on one side of `near`, whose neighbour on that side is `far`."""
    if far is None:
        return EXACT.subtract(near, Decimal(GAP)) if is_before else EXACT.add(near, Decimal(GAP))
    return place_between(far, near) if is_before else place_between(near, far)


def needs_new_places(place: Decimal) -> bool:
    exponent = place.as_tuple().exponent
    assert isinstance(exponent, int), "a finite number"
    return -exponent > LONGEST_PLACE


def proof_of_end(
    event: str | None, *, by: str | None, has_keeper: bool, has_duration: bool, attempt: int
) -> str | None:
    """How it is known that nothing of a task's last attempt is alive; none if no attempt was running.

    `event` is the event that ended the attempt. The worker reported that the work `returned`, the `keeper` of its
    processes, the `guardian` of its worker or a `successor` found none of them alive, or only its `lease` is over, by
    which time its worker has stopped.
    """
    if event is None or attempt == 0:
        return None
    if by in {"guardian", "successor"}:
        return by
    if has_keeper:
        return "keeper"
    return "returned" if has_duration else "lease"


CAN_BE_RUN: Collection[str] = ("waiting", "failed")
"""An item in one of these states can be the item of a run."""


def keeps_named_item(*, is_named: bool, bound_state: str | None) -> bool:
    """Whether a run keeps the item that was named when it started, whatever is first in the backlog."""
    return is_named and bound_state in CAN_BE_RUN


def takes_first_item(*, is_named: bool, mode: str) -> bool:
    """Whether a run that does not keep its item goes over to the first that waits."""
    return not is_named or mode == Mode.LOOP
