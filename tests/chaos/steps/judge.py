"""Criterion 22: a step that has finished is not run again, and what it came to is what later attempts are given."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from tests.chaos.judge.owners import GRACE_SECONDS, was_frozen
from tests.chaos.judge.rows import Rows
from tests.chaos.judge.violation import STEP_RUN_AGAIN, Violation
from tests.chaos.record import Record
from tests.chaos.steps.rows import Entry, StepRow, StepRows

WALKERS = {"walk", "march", "hike"}


def judge_steps(record: Record, rows: Rows, steps: StepRows, lease_seconds: float) -> Iterator[Violation]:
    entries: dict[tuple[str, str], list[Entry]] = defaultdict(list)
    for entry in steps.entries:
        entries[entry.task_id, entry.name].append(entry)
    kept = {(row.task_id, row.name): row for row in steps.kept}
    for (task_id, name), runs in entries.items():
        for attempt, number in Counter(run.attempt for run in runs).items():
            if number > 1:
                words = f"{name} of task {task_id} was run {number} times by attempt {attempt}"
                yield Violation(STEP_RUN_AGAIN, words, task_id, runs[-1].at)
        if (row := kept.get((task_id, name))) is not None:
            yield from _run_again(record, row, runs, lease_seconds)
    yield from _given_wrongly(rows, steps)


def _run_again(record: Record, row: StepRow, runs: Sequence[Entry], lease_seconds: float) -> Iterator[Violation]:
    """By a later attempt, ever; by an earlier one that should be dead, after it was finished."""
    if not any(run.attempt == row.attempt for run in runs):
        words = f"{row.name} of task {row.task_id} was kept for attempt {row.attempt}, which has not run it"
        yield Violation(STEP_RUN_AGAIN, words, row.task_id, row.at)
    for run in runs:
        is_late = run.attempt < row.attempt and run.at > row.at + GRACE_SECONDS
        if run.attempt > row.attempt or (is_late and not was_frozen(record, row.at, run.at, lease_seconds)):
            words = f"{row.name} of task {row.task_id} was finished by attempt {row.attempt}"
            yield Violation(STEP_RUN_AGAIN, f"{words}, and run again by attempt {run.attempt}", row.task_id, run.at)


def _given_wrongly(rows: Rows, steps: StepRows) -> Iterator[Violation]:
    """A walk's result is what its steps came to, in their order."""
    came_to: dict[str, dict[str, object]] = defaultdict(dict)
    for row in steps.kept:
        came_to[row.task_id][row.name] = row.result
    for task in rows.tasks.values():
        if task.actor in WALKERS and task.status == "completed":
            expected = [came_to[task.task_id].get(f"step {number}") for number in range(len(came_to[task.task_id]))]
            if task.result != expected:
                words = f"task {task.task_id} was given {task.result!r}, and its steps came to {expected!r}"
                yield Violation(STEP_RUN_AGAIN, words, task.task_id, task.completed_at)
