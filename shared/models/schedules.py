"""Schedules, a row for each time that one was due, and what happened to them."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import CheckConstraint, Column, Index, text
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import counter, document, moment
from windlass.shared.models.projects import identity
from windlass.shared.schedules.words import CatchUp, Cause, Kind, Outcome, Overlap, ScheduleState
from windlass.shared.sql_fragments import words


class Schedule(SQLModel, table=True):
    """What is started when. `shared/features/schedules` changes it, under this row's lock."""

    __tablename__ = "schedules"
    __table_args__ = (
        CheckConstraint(f"kind IN {words(Kind)}", name="kind"),
        CheckConstraint(f"overlap IN {words(Overlap)}", name="overlap"),
        CheckConstraint(f"catch_up IN {words(CatchUp)}", name="catch_up"),
        CheckConstraint(f"state IN {words(ScheduleState)}", name="state"),
        CheckConstraint("(cron IS NULL) <> (every_seconds IS NULL) AND every_seconds >= 10", name="rule"),
        CheckConstraint("(state = 'paused') = (pause_reason IS NOT NULL)", name="pause"),
        CheckConstraint("next_at IS NULL OR (state = 'active' AND deleted_at IS NULL)", name="next"),
        CheckConstraint("failures >= 0 AND last_seq >= 0 AND version >= 1", name="counters"),
        Index("schedules_name", "user_id", "name", unique=True, postgresql_where=text("deleted_at IS NULL")),
        Index("schedules_due", "next_at", postgresql_where=text("next_at IS NOT NULL")),
        Index("schedules_user", "user_id", "schedule_id"),
    )

    schedule_id: UUID = identity(primary=True)
    user_id: str
    name: str
    cron: str | None = None
    every_seconds: int | None = None
    timezone: str = Field(sa_column_kwargs={"server_default": "UTC"})
    target: dict[str, Any] = document(optional=False)
    """As its author wrote it."""
    kind: str
    prepared: dict[str, Any] = document(optional=False)
    """What is started, checked and complete, but for the ids that each start makes anew."""
    overlap: str
    catch_up: str
    catch_up_window_seconds: float
    jitter_seconds: float
    pause_after_failures: int | None = None
    state: str = Field(sa_column_kwargs={"server_default": ScheduleState.ACTIVE.value})
    pause_reason: str | None = None
    failures: int = counter()
    """In a row."""
    anchor_at: datetime = moment(optional=False)
    """From here on every so many seconds."""
    last_due_at: datetime = moment(optional=False)
    """Up to here every due time has its row."""
    next_due_at: datetime | None = moment()
    next_at: datetime | None = moment()
    """When the next due time is started, with its jitter; none while it is paused."""
    last_started_at: datetime | None = moment()
    """The due time that was started last."""
    version: int = Field(default=1, sa_column_kwargs={"server_default": text("1")})
    """Another after each change: nobody starts what was planned for an earlier one."""
    last_seq: int = counter()
    declared_by: str | None = None
    """Where it stands if nobody made it over REST: in the configuration, or in an actor's code."""
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)
    deleted_at: datetime | None = moment()
    pause_note: str | None = None
    """What the person who paused it wrote; earlier function sets leave it behind when they resume a schedule."""


class ScheduleRun(SQLModel, table=True):
    """What became of one due time. The key is the fence: there is no second row, and so no second start."""

    __tablename__ = "schedule_runs"
    __table_args__ = (
        CheckConstraint(f"outcome IN {words(Outcome)}", name="outcome"),
        CheckConstraint(f"cause IN {words(Cause)}", name="cause"),
        CheckConstraint("count >= 1 AND (count = 1 OR until IS NOT NULL)", name="count"),
        CheckConstraint(
            "(outcome = 'started') = (num_nonnulls(task_id, workflow_id, run_id) = 1)"
            " AND (outcome = 'waiting') = (start IS NOT NULL) AND (ended_at IS NULL) = (ended_as IS NULL)",
            name="started",
        ),
        Index(
            "schedule_runs_open",
            "schedule_id", "due_at",
            postgresql_where=text("outcome = 'waiting' OR (outcome = 'started' AND ended_at IS NULL)"),
        ),
    )  # fmt: skip

    schedule_id: UUID = identity(primary=True)
    due_at: datetime = Field(sa_column=Column(TIMESTAMP(timezone=True), primary_key=True))
    outcome: str
    reason: str | None = None
    cause: str
    task_id: UUID | None = identity(optional=True)
    workflow_id: UUID | None = identity(optional=True)
    project_id: UUID | None = identity(optional=True)
    run_id: UUID | None = identity(optional=True)
    count: int = Field(default=1, sa_column_kwargs={"server_default": text("1")})
    until: datetime | None = moment()
    """Of many that were missed together, in one row: how many, and the last."""
    start: dict[str, Any] | None = document()
    """What is to be started when what is in its way has ended."""
    decided_at: datetime = moment(optional=False)
    ended_at: datetime | None = moment()
    ended_as: str | None = None


class ScheduleEvent(SQLModel, table=True):
    """One row of a schedule's history; `seq` is gap-free per schedule."""

    __tablename__ = "schedule_events"

    schedule_id: UUID = identity(primary=True)
    seq: int = Field(primary_key=True)
    type: str
    at: datetime = moment(optional=False)
    data: dict[str, Any] = document(optional=False)
