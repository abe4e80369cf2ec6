"""Criterion 21: each end of an agent's task is handled and written down once, and is findable or listed as failed."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.judge.rows import EventRow, Rows
from tests.chaos.judge.violation import NOT_REMEMBERED, Violation
from tests.chaos.memory.rows import MemoryRows

ENDED_AS = {"complete": "completed", "bury": "dead", "cancel": "cancelled", "reject": "cancelled"}


def judge_memory(rows: Rows, memory: MemoryRows) -> Iterator[Violation]:
    yield from _once(rows, memory)
    for event in memory.events:
        if event.task_id not in memory.concerned:
            yield Violation(NOT_REMEMBERED, f"event {event.event_id} is of a task that wants none", event.task_id)
        if event.embedded < memory.models and event.event_id not in memory.failed:
            stands = "was gathered" if event.is_gathered else "was never gathered"
            words = f"event {event.event_id} {stands}, has no vector, and no failed job lists it"
            yield Violation(NOT_REMEMBERED, words, event.task_id)
    if memory.pending:
        yield Violation(NOT_REMEMBERED, f"{memory.pending} rows are left in the outbox")


def _once(rows: Rows, memory: MemoryRows) -> Iterator[Violation]:
    written: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for event in memory.events:
        written[event.task_id].append((event.life, event.status))
    handled: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for each in memory.handled:
        handled[each.task_id].append((each.life, each.status))
    for task_id in memory.concerned:
        expected = ends(rows.events.get(task_id, ()))
        for name, found in (("agent events", written[task_id]), ("handled ends", handled[task_id])):
            if sorted(found) != expected:
                words = f"task {task_id} has ended as {expected} by life, and its {name} are {sorted(found)}"
                yield Violation(NOT_REMEMBERED, words, task_id)


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
