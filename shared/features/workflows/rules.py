"""What follows from the tasks of a workflow, as pure functions."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import Any
from uuid import UUID

import msgspec

from windlass.shared.states import LIVE, TERMINAL, State
from windlass.shared.workflow_states import Counts, WorkflowStatus

MOST_ELEMENTS = 1000
"""Of a list that becomes one task for each."""

LONGEST_KEY = 255


class Tally(msgspec.Struct):
    """How many tasks of a node, or of no node, have a status, and what is still to be done with them."""

    node: str | None
    status: str
    tasks: int
    to_cancel: int = 0
    to_hold: int = 0
    to_release: int = 0


class Node(msgspec.Struct):
    """A `for_each` node, with its barrier."""

    node_id: UUID
    key: str
    status: str
    members: int | None
    """How many tasks it has; none while it is not expanded."""
    path: str
    source: UUID
    source_status: str | None
    error_type: str | None
    actor: str
    provider: str
    """Of its tasks."""


class Step(StrEnum):
    """What has to be done with a node."""

    EXPAND = "expand"
    BURY = "bury"
    """The task with its list has died or was cancelled."""
    WAIT = "wait"
    """It waits for its list again."""
    FOLLOW = "follow"
    """It has another status, because its tasks have."""


def status_of_tasks(statuses: Mapping[str, int]) -> State:
    """Of an expanded node."""
    if any(statuses.get(status) for status in LIVE):
        return State.RUNNING
    if statuses.get(State.DEAD):
        return State.DEAD
    return State.CANCELLED if statuses.get(State.CANCELLED) else State.COMPLETED


def step_of_node(node: Node, statuses: Mapping[str, int]) -> Step | None:
    """A list that cannot be used buries its node for good. A node that was buried because of its source waits again
    when the source is live again."""
    if node.members is not None:
        return Step.FOLLOW if node.status != status_of_tasks(statuses) else None
    if node.status == State.CANCELLED or (node.status == State.DEAD and node.error_type != "DependencyFailed"):
        return None
    if node.source_status == State.COMPLETED:
        return Step.EXPAND
    if node.source_status in {State.DEAD, State.CANCELLED}:
        return Step.BURY if node.status != State.DEAD else None
    return Step.WAIT if node.status != State.BLOCKED else None


def by_node(tallies: Iterable[Tally]) -> dict[str | None, Counter[str]]:
    found: dict[str | None, Counter[str]] = {}
    for each in tallies:
        found.setdefault(each.node, Counter())[each.status] += each.tasks
    return found


def counts_of(
    tallies: Sequence[Tally],
    nodes: Iterable[Node],
    *,
    failures: int,
    failure_threshold: int | None,
    cancel_requested: bool,
) -> Counts:
    """A node counts like a task, besides its tasks."""
    statuses = Counter[str]()
    for each in tallies:
        statuses[each.status] += each.tasks
    for node in nodes:
        statuses[node.status] += 1
    return Counts(
        live=sum(statuses[status] for status in LIVE),
        completed=statuses[State.COMPLETED],
        dead=statuses[State.DEAD],
        cancelled=statuses[State.CANCELLED],
        failures=failures,
        failure_threshold=failure_threshold,
        cancel_requested=cancel_requested,
    )


def change_of(was: str, now: str) -> str:
    """The name of the event."""
    match now:
        case WorkflowStatus.COMPLETED:
            return "complete"
        case WorkflowStatus.FAILED:
            return "fail"
        case WorkflowStatus.ESCALATED:
            return "escalate"
        case WorkflowStatus.CANCELLED:
            return "cancel"
    return "resume" if was == WorkflowStatus.ESCALATED else "revive"


class Page(StrEnum):
    """The operation that the next page of tasks needs."""

    CANCEL = "cancel"
    HOLD = "hold"
    RELEASE = "release"


def page_of(status: str, tallies: Sequence[Tally], *, cancel_requested: bool) -> Page | None:
    """A cancel ends what is live, an escalation holds what waits, and otherwise what was held continues."""
    if cancel_requested:
        return Page.CANCEL if any(each.to_cancel for each in tallies) else None
    if status == WorkflowStatus.ESCALATED:
        return Page.HOLD if any(each.to_hold for each in tallies) else None
    return Page.RELEASE if any(each.to_release for each in tallies) else None


def fault_of_list(kind: str | None, length: int | None, path: str, keys: Sequence[str | None] | None) -> str | None:
    """Why a list cannot become tasks."""
    if kind is None:
        return f"there is nothing at {path} in the result that it is for each of"
    if kind != "array" or length is None:
        return f"a list is wanted, and {kind} is there"
    if length > MOST_ELEMENTS:
        return f"the list has {length} elements, and {MOST_ELEMENTS} are the most"
    for number, key in enumerate(keys or ()):
        if key is not None and len(key) > LONGEST_KEY:
            return f"the concurrency key of element {number} has {len(key)} characters, and {LONGEST_KEY} are the most"
    return None


def error_of_list(fault: str) -> dict[str, Any]:
    return _error("InvalidInput", f"/for_each: {fault}", {"pointer": "/for_each"})


def error_of_source(source: UUID) -> dict[str, Any]:
    return _error(
        "DependencyFailed", f"its list comes from {source}, which died or was cancelled", {"task_id": str(source)}
    )


def _error(kind: str, message: str, details: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": kind,
        "kind": "permanent",
        "message": message,
        "stack_trace": None,
        "attempt": 0,
        "details": details,
    }


def is_over(status: str) -> bool:
    return status in TERMINAL
