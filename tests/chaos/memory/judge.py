"""Criterion 21: what an agent did is written down once for each end, and can be found or is listed as failed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.judge.rows import EventRow, Rows
from tests.chaos.judge.violation import NOT_REMEMBERED, Violation
from tests.chaos.memory.rows import AgentEventRow, MemoryRows

ENDED_AS = {"complete": "completed", "bury": "dead", "cancel": "cancelled", "reject": "cancelled"}


def judge_memory(rows: Rows, memory: MemoryRows) -> Iterator[Violation]:
    written: dict[str, list[AgentEventRow]] = defaultdict(list)
    for event in memory.events:
        written[event.task_id].append(event)
    for task_id in memory.concerned:
        expected = ends(rows.events.get(task_id, ()))
        found = sorted((event.life, event.status) for event in written[task_id])
        if found != expected:
            words = f"task {task_id} has ended as {expected} by life, and agent events say {found}"
            yield Violation(NOT_REMEMBERED, words, task_id)
    for event in memory.events:
        if event.task_id not in memory.concerned:
            yield Violation(NOT_REMEMBERED, f"event {event.event_id} is of a task that wants none", event.task_id)
        if event.embedded < memory.models and event.event_id not in memory.failed:
            stands = "was gathered" if event.is_gathered else "was never gathered"
            words = f"event {event.event_id} {stands}, has no vector, and no failed job lists it"
            yield Violation(NOT_REMEMBERED, words, event.task_id)
    if memory.untold:
        yield Violation(NOT_REMEMBERED, f"{memory.untold} ends were not written down")


def ends(events: Sequence[EventRow]) -> list[tuple[int, str]]:
    """Life and state of each end, by the task's own history; one that has lost too many workers ends as it stalls."""
    life, found = 1, []
    for event in events:
        if event.type == "revive":
            life += 1
        elif event.type in ENDED_AS:
            found.append((life, ENDED_AS[event.type]))
        elif event.type == "stall" and event.status == "dead":
            found.append((life, "dead"))
    return found
