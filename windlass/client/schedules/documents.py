"""A schedule and what became of its due times, as the API tells them."""

from datetime import datetime
from typing import Any, Literal

from windlass.client.task import Document

Overlap = Literal["skip", "queue-one", "allow", "cancel-previous"]
CatchUp = Literal["none", "latest", "all"]
ScheduleState = Literal["active", "paused"]
RunOutcome = Literal["waiting", "started", "skipped", "missed", "refused"]
RunCause = Literal["time", "trigger", "backfill"]


class Schedule(Document, frozen=True, kw_only=True):
    """What is started when; `words` and `next_times` say it as a person would."""

    schedule_id: str
    name: str
    target: dict[str, Any]
    user_id: str = ""
    cron: str | None = None
    every_seconds: int | None = None
    timezone: str = "UTC"
    overlap: Overlap = "skip"
    catch_up: CatchUp = "latest"
    catch_up_window_seconds: float = 3600
    jitter_seconds: float = 0
    pause_after_failures: int | None = None
    state: ScheduleState = "active"
    pause_reason: str | None = None
    pause_note: str | None = None
    failures: int = 0
    next_due_at: datetime | None = None
    next_at: datetime | None = None
    declared_by: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    words: str = ""
    next_times: tuple[datetime, ...] = ()


class ScheduleRun(Document, frozen=True, kw_only=True):
    """What became of one due time; of many that were missed in a row, `count` and `until` say how many."""

    due_at: datetime
    outcome: RunOutcome
    reason: str | None = None
    cause: RunCause = "time"
    task_id: str | None = None
    workflow_id: str | None = None
    project_id: str | None = None
    run_id: str | None = None
    count: int = 1
    until: datetime | None = None
    decided_at: datetime | None = None
    ended_at: datetime | None = None
    ended_as: str | None = None


class ScheduleRuns(Document, frozen=True, kw_only=True):
    """What became of several due times."""

    items: tuple[ScheduleRun, ...]


class Preview(Document, frozen=True, kw_only=True):
    """Times in words, and the next of them."""

    words: str
    times: tuple[datetime, ...] = ()
