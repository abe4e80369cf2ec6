"""Schedules and what became of their due times, as they go out."""

from itertools import islice
from typing import Any

from windlass.shared.schedules.times import in_words
from windlass.shared.schedules.words import ScheduleState
from windlass.shared.store.rows import ScheduleRunRow
from windlass.shared.store.schedules.reading import Read, rule_of

GIVEN = (
    "cron", "every_seconds", "timezone", "target", "overlap", "catch_up", "catch_up_window_seconds", "jitter_seconds",
    "pause_after_failures",
)  # fmt: skip
SHOWN = (
    "schedule_id", "name", "user_id", *GIVEN, "state", "pause_reason", "failures", "next_due_at", "next_at",
    "declared_by", "created_at", "updated_at",
)  # fmt: skip
NEXT = 5


def schedule_document(row: Read) -> dict[str, Any]:
    """With its times in words, and the next five."""
    rule = rule_of(row)
    times = rule.after(max(row.read_at, row.last_due_at)) if row.next_due_at is not None else iter(())
    return {
        **{name: row[name] for name in SHOWN},
        "pause_note": row.pause_note if row.state == ScheduleState.PAUSED else None,
        "words": in_words(rule),
        "next_times": list(islice(times, NEXT)),
    }


def run_document(row: ScheduleRunRow) -> dict[str, Any]:
    names = (
        "due_at", "outcome", "reason", "cause", "task_id", "workflow_id", "project_id", "run_id", "count", "until",
        "decided_at", "ended_at", "ended_as",
    )  # fmt: skip
    return {name: row[name] for name in names}
