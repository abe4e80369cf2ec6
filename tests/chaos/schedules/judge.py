"""Criteria 19 and 20: what a schedule promises, judged by its rows, by what it has started, and by the witness."""

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.chaos.judge.violation import NO_ROW, STARTED_WRONGLY, Violation
from tests.chaos.record import Record
from tests.chaos.schedules.rows import RunRow, ScheduleRow, ScheduleRows

STANDS_STILL_SECONDS = 30.0
"""So long after its time the next one of a schedule that nobody has paused may be, when all is calm."""


def judge_schedules(record: Record, schedules: ScheduleRows) -> Iterator[Violation]:
    known = {schedule.schedule_id for schedule in schedules.schedules}
    for schedule_id in record.schedules.made:
        if schedule_id not in known:
            yield Violation(NO_ROW, f"schedule {schedule_id} was accepted, and there is no such row")
    for schedule in schedules.schedules:
        yield from without_a_row(record, schedule, schedules)
    yield from started_wrongly(schedules)


# 19


def without_a_row(record: Record, schedule: ScheduleRow, schedules: ScheduleRows) -> Iterator[Violation]:
    """The times of each rule, from when it was given to when the next was, have a row each; and each row is of a time
    that some rule of it had."""
    name = f"schedule {schedule.schedule_id}"
    runs = schedules.runs.get(schedule.schedule_id, ())
    rows = Counter(round(run.due_at) for run in runs if run.cause != "trigger")
    for at, number in rows.items():
        if number > 1:
            yield Violation(NO_ROW, f"{name} has {number} rows for one due time", None, at)
    for due_at in due_times(record, schedule, schedules):
        if not rows[round(due_at)] and not _is_told_with_others(runs, due_at):
            yield Violation(NO_ROW, f"{name} was due, and there is no row", None, due_at)
    rules = schedules.rules.get(schedule.schedule_id, ())
    for run in runs:
        if run.cause == "time" and not any(rule.has(run.due_at) for rule in rules):
            yield Violation(NO_ROW, f"{name} has a row for a time at which it was never due", None, run.due_at)
    if schedule.state == "active" and schedule.deleted_at is None and (schedule.next_late or 0) > STANDS_STILL_SECONDS:
        words = f"{name} is active, and its next time was {schedule.next_late:.0f} s ago"
        yield Violation(NO_ROW, words)


def due_times(record: Record, schedule: ScheduleRow, schedules: ScheduleRows) -> list[float]:
    """Whoever deletes one ends its times when asking, and not when the answer comes."""
    rules = schedules.rules.get(schedule.schedule_id, ())
    asked = [
        call.asked_at for call in record.schedules.calls if call.kind == "delete" and call.about == schedule.schedule_id
    ]
    ends = [rule.since for rule in rules[1:]]
    last = max(schedule.reached, min(asked, default=schedule.reached)) if schedule.deleted_at else schedule.reached
    return [at for rule, until in zip(rules, [*ends, last], strict=True) for at in rule.times(until)]


def _is_told_with_others(runs: Sequence[RunRow], at: float) -> bool:
    return any(run.until is not None and run.due_at <= at <= run.until for run in runs)


# 20


def started_wrongly(schedules: ScheduleRows) -> Iterator[Violation]:
    """Each start has its row, each row that started something names it, and nothing was started by two."""
    named = Counter(
        (schedule_id, run.started)
        for schedule_id, runs in schedules.runs.items()
        for run in runs
        if run.outcome == "started"
    )
    for (schedule_id, started), number in named.items():
        if number > 1:
            yield Violation(STARTED_WRONGLY, f"{number} due times of schedule {schedule_id} name {started}")
    there = Counter(schedules.started)
    for schedule_id, started in there:
        if (schedule_id, started) not in named:
            words = f"schedule {schedule_id} has started {started}, and no due time names it"
            yield Violation(STARTED_WRONGLY, words, started)
    for schedule_id, started in named:
        if started is None or (schedule_id, started) not in there:
            words = f"a due time of schedule {schedule_id} says that it started {started}, and there is no such thing"
            yield Violation(STARTED_WRONGLY, words)
