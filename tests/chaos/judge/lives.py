"""Criteria 1 and 2: what was accepted ends, and each life ends once, by the attempt that held the lease."""

from collections.abc import Iterator, Sequence

from tests.chaos.judge.rows import EventRow, Rows, TaskRow
from tests.chaos.judge.violation import COMPLETED_WRONGLY, UNFINISHED, Violation
from tests.chaos.record import Record

ENDS_OF_AN_ATTEMPT = {"complete", "retry", "stall", "interrupt"}
"""Only an attempt that runs ends so. A `bury` or a `cancel` may also come to a task that waits."""

WORDS_OF_AN_ATTEMPT = {"progress", "output"}


def unfinished(record: Record, rows: Rows, bound_seconds: float) -> Iterator[Violation]:
    """Measured from the last fault, or from the submit or the latest revival, if those came after it."""
    last_fault = max((fault.ended_at for fault in record.faults), default=0.0)
    revived_at = {each.task_id: each.at for each in record.revived}
    for task_id, accepted in record.accepted.items():
        row = rows.tasks.get(task_id)
        if row is None:
            yield Violation(UNFINISHED, f"task {task_id} was accepted, and there is no such row", task_id, accepted.at)
            continue
        until = max(last_fault, accepted.at, revived_at.get(task_id, 0.0), _latest_life(rows, task_id)) + bound_seconds
        if not row.has_ended:
            words = f"task {task_id} ({row.actor} at {row.provider}) is still {row.status}"
            yield Violation(UNFINISHED, words, task_id, rows.at)
        elif row.completed_at is not None and row.completed_at > until:
            late = row.completed_at - until
            words = f"task {task_id} ({row.actor} at {row.provider}) ended {late:.1f} s after the bound"
            yield Violation(UNFINISHED, words, task_id, row.completed_at)


def _latest_life(rows: Rows, task_id: str) -> float:
    """A revival also gives a new life to the dependents, of which no client was told."""
    return max((event.at for event in rows.events.get(task_id, ()) if event.type == "revive"), default=0.0)


def completed_wrongly(record: Record, rows: Rows) -> Iterator[Violation]:
    for task_id, events in rows.events.items():
        story = _Story()
        for event in events:
            for words in story.go_on(event):
                yield Violation(COMPLETED_WRONGLY, f"task {task_id}: {words} (seq {event.seq})", task_id, event.at)
    for task in rows.tasks.values():
        if task.status == "completed" and task.actor == "probe":
            yield from _result(record, task, rows.events.get(task.task_id, ()))


class _Story:
    """A history on the way through it: who holds the lease, and whether this life has completed."""

    def __init__(self) -> None:
        self._holder: int | None = None
        self._newest = 0
        self._is_completed = False

    def go_on(self, event: EventRow) -> Iterator[str]:
        """What is wrong with the next event."""
        if event.type == "revive":
            self._is_completed = False
        elif self._is_completed:
            yield f"`{event.type}` of attempt {event.attempt} came after it had completed in this life"
        if event.type == "claim":
            yield from self._claim(event.attempt)
        elif event.type in WORDS_OF_AN_ATTEMPT and self._holder != event.attempt:
            yield f"attempt {event.attempt} was heard when it held no lease"
        elif event.type in ENDS_OF_AN_ATTEMPT and self._holder != event.attempt:
            yield f"`{event.type}` of attempt {event.attempt}, which had lost its lease"
        if event.type in ENDS_OF_AN_ATTEMPT or event.type in {"bury", "cancel"}:
            self._holder = None
        self._is_completed = self._is_completed or event.type == "complete"

    def _claim(self, attempt: int) -> Iterator[str]:
        if self._holder is not None:
            yield f"attempt {attempt} was claimed while attempt {self._holder} held the lease"
        if attempt <= self._newest:
            yield f"attempt {attempt} was claimed after attempt {self._newest}"
        self._holder, self._newest = attempt, max(self._newest, attempt)


def _result(record: Record, task: TaskRow, events: Sequence[EventRow]) -> Iterator[Violation]:
    """A probe's result says which attempt on which worker made it, and gives back what it was given."""
    completed = next((event for event in reversed(events) if event.type == "complete"), None)
    claims = {event.attempt: event for event in events if event.type == "claim"}
    if completed is None or not isinstance(task.result, dict):
        words = f"task {task.task_id} is completed without a result, or without an event that says so"
        yield Violation(COMPLETED_WRONGLY, words, task.task_id, task.completed_at)
        return
    made_by = task.result.get("attempt"), task.result.get("worker_id")
    claim = claims.get(completed.attempt)
    held_by = completed.attempt, claim.worker_id if claim else None
    if made_by != held_by:
        words = (
            f"task {task.task_id}: its result is by attempt {made_by[0]} on {made_by[1]},"
            f" and the lease was with attempt {held_by[0]} on {held_by[1]}"
        )
        yield Violation(COMPLETED_WRONGLY, words, task.task_id, completed.at)
    accepted = record.accepted.get(task.task_id)
    if accepted is not None and task.result.get("echo") != accepted.mark:
        words = f"task {task.task_id} was given {accepted.mark!r} and gave back {task.result.get('echo')!r}"
        yield Violation(COMPLETED_WRONGLY, words, task.task_id, completed.at)
