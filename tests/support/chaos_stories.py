"""Rows and records as a storm would leave them, made up for the tests of its judge."""

from dataclasses import replace
from typing import Any

from tests.chaos.judge.checker import judge_rows
from tests.chaos.judge.rows import EventRow, Rows, TaskRow
from tests.chaos.judge.violation import Violation
from tests.chaos.record import Accepted, Record

LEASE = 4.0
BOUND = 60.0
NOW = 1000.0
NOBODY_HAS_THIS_PID = 2**22 + 1


def events(*names: str, start: float = 100.0, attempt: int = 0) -> list[EventRow]:
    """One a second; each claim is a new attempt, by a worker that is named after it."""
    story = []
    for seq, name in enumerate(names, start=1):
        attempt += name == "claim"
        worker_id = f"worker-{attempt}" if name == "claim" else None
        story.append(EventRow(seq, name, start + seq - 1, attempt, xid=10 * seq, worker_id=worker_id))
    return story


HAPPY = ("submit", "dispatch", "claim", "progress", "complete")


def a_task(task_id: str = "a", *names: str, **fields: Any) -> tuple[TaskRow, list[EventRow]]:
    story = events(*(names or HAPPY))
    attempt = max(event.attempt for event in story)
    result = {"echo": f"mark-{task_id}", "attempt": attempt, "worker_id": f"worker-{attempt}"}
    row = TaskRow(
        task_id, "probe", "probe", "completed", attempt, len(story), job_open=False, result=result,
        completed_at=story[-1].at,
    )  # fmt: skip
    return replace(row, **fields), story


def rows_of(*tasks: tuple[TaskRow, list[EventRow]], **more: Any) -> Rows:
    return Rows(
        NOW, {row.task_id: row for row, _ in tasks}, {row.task_id: story for row, story in tasks}, **more
    )  # fmt: skip


def record_of(*task_ids: str, **more: Any) -> Record:
    accepted = {each: Accepted(each, "probe", "probe", 100.0, f"mark-{each}") for each in task_ids}
    return Record(accepted=accepted, **more)


def judged(record: Record, rows: Rows, processes: Any = ()) -> list[Violation]:
    return judge_rows(record, rows, processes, bound_seconds=BOUND, lease_seconds=LEASE)


def wrong(record: Record, rows: Rows, processes: Any = ()) -> set[int]:
    return {violation.criterion for violation in judged(record, rows, processes)}
