"""Schedules as they go out, for the OpenAPI document."""

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import Field

from windlass.services.api.reference.documents.tasks import Document
from windlass.shared.schedules.words import CatchUp, Cause, Outcome, Overlap, ScheduleState


class ScheduleDocument(Document):
    """What is started when."""

    schedule_id: UUID
    name: str
    user_id: str
    cron: str | None
    every_seconds: int | None
    timezone: str
    target: Annotated[dict[str, Any], Field(description="As it was written: `task`, `workflow` or `project`.")]
    overlap: Overlap
    catch_up: CatchUp
    catch_up_window_seconds: float
    jitter_seconds: float
    pause_after_failures: int | None
    state: ScheduleState
    pause_reason: Annotated[
        str | None, Field(description="`asked-for`, `failures` or `owner-has-no-key`; null while it is active.")
    ]
    pause_note: Annotated[str | None, Field(description="The `reason` that was given when it was paused.")]
    failures: Annotated[int, Field(description="In a row.")]
    next_due_at: datetime | None
    next_at: Annotated[datetime | None, Field(description="With its jitter.")]
    declared_by: Annotated[str | None, Field(description="Where it stands, if nobody made it over REST.")]
    created_at: datetime
    updated_at: datetime
    words: Annotated[str, Field(description="Its times, as a person would say them.")]
    next_times: Annotated[list[datetime], Field(description="The next five.")]


class SchedulePage(Document):
    """Schedules, newest first."""

    items: list[ScheduleDocument]
    next_cursor: UUID | None = None


class ScheduleRunDocument(Document):
    """What became of one due time."""

    due_at: datetime
    outcome: Outcome
    reason: Annotated[
        str | None,
        Field(
            description="Why it was not started: `previous-live`, `another-waits`, `superseded`, `too-late`, `paused`, "
            "`queue-already-running`, `owner-has-no-key`, …"
        ),
    ]
    cause: Cause
    task_id: UUID | None
    workflow_id: UUID | None
    project_id: UUID | None
    run_id: UUID | None
    count: Annotated[int, Field(description="Of a long time that was missed in one row: how many due times, at least.")]
    until: datetime | None
    decided_at: datetime
    ended_at: datetime | None
    ended_as: Annotated[str | None, Field(description="How what was started has ended.")]


class ScheduleRunList(Document):
    """Due times."""

    items: list[ScheduleRunDocument]


class ScheduleRunPage(ScheduleRunList):
    """Due times, the latest first."""

    next_cursor: datetime | None = None


class PreviewDocument(Document):
    """Times, looked ahead at."""

    words: str
    times: list[datetime]
