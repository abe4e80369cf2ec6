"""Projects: a backlog of items, at most one open run, and the history of both."""

from datetime import datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean, CheckConstraint, Column, Index, Numeric, UniqueConstraint, text
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import counter, document, moment
from windlass.shared.models.soundness import OF_A_PROJECT, OF_A_RUN
from windlass.shared.project_states import STORED, OnFailure, QueueState, RunState
from windlass.shared.sql_fragments import words


def identity(*, primary: bool = False, optional: bool = False) -> Any:
    return Field(default=None, sa_column=Column(PG_UUID(as_uuid=True), primary_key=primary, nullable=optional))


class Project(SQLModel, table=True):
    """A run queue. `state` is changed by `shared/features/projects`, under this row's lock, and by nothing else."""

    __tablename__ = "projects"
    __table_args__ = (
        CheckConstraint(OF_A_PROJECT, name="sound"),
        Index("projects_user", "user_id", "project_id"),
        Index("projects_busy", "project_id", postgresql_where=text("state <> 'idle'")),
    )

    project_id: UUID = identity(primary=True)
    user_id: str
    name: str
    defaults: dict[str, Any] = document(optional=False)
    on_failure: str = Field(sa_column_kwargs={"server_default": OnFailure.STOP.value})
    state: str = Field(sa_column_kwargs={"server_default": QueueState.IDLE.value})
    mode: str | None = None
    current_run_id: UUID | None = identity(optional=True)
    """The open run; after a force-stop also one whose task has ended while something that came of it still lives."""
    forced_at: datetime | None = moment()
    started_at: datetime | None = moment()
    stopped_at: datetime | None = moment()
    stop_reason: str | None = None
    last_error: dict[str, Any] | None = document()
    last_seq: int = counter()
    archived_at: datetime | None = moment()
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)


class ProjectItem(SQLModel, table=True):
    """A task to be. `position` is a fraction, so that a place between any two others is free: a move writes one row."""

    __tablename__ = "project_items"
    __table_args__ = (
        CheckConstraint(f"state IN {words(STORED)}", name="state"),
        UniqueConstraint("project_id", "position", deferrable=True, initially="IMMEDIATE"),
        Index("project_items_state", "project_id", "state", "position"),
    )

    item_id: UUID = identity(primary=True)
    project_id: UUID = identity()
    position: Decimal = Field(sa_column=Column(Numeric, nullable=False))
    state: str = Field(sa_column_kwargs={"server_default": "waiting"})
    title: str | None = None
    given: dict[str, Any] = document(optional=False)
    """As its author wrote it, without the project's defaults."""
    task: dict[str, Any] = document(optional=False)
    """The whole submission, defaults and all, so that the end of one run can submit the next without asking anybody."""
    last_run_id: UUID | None = identity(optional=True)
    """The run whose end decides about this item; none once it was changed after it."""
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)


class ProjectRun(SQLModel, table=True):
    """One task of a project in one of its lives, with all its retries."""

    __tablename__ = "project_runs"
    __table_args__ = (
        CheckConstraint(OF_A_RUN, name="sound"),
        UniqueConstraint("task_id", "life"),
        Index("project_runs_open", "project_id", unique=True, postgresql_where=text("ended_at IS NULL")),
        Index("project_runs_project", "project_id", "run_id"),
    )

    run_id: UUID = identity(primary=True)
    project_id: UUID = identity()
    item_id: UUID = identity()
    task_id: UUID = identity()
    life: int
    attempts_before: int = counter()
    """How many attempts its task had when the run began: as long as it has no more, no worker has taken it."""
    mode: str
    named: bool = Field(sa_column=Column(Boolean, nullable=False, server_default=text("false")))
    """Somebody asked for this item: it is not exchanged for another."""
    state: str = Field(sa_column_kwargs={"server_default": RunState.RUNNING.value})
    started_at: datetime = moment(optional=False)
    ended_at: datetime | None = moment()
    error: dict[str, Any] | None = document()
    receipt: dict[str, Any] | None = document()
    revived_from: UUID | None = identity(optional=True)
    schedule_id: UUID | None = identity(optional=True)
    """The schedule that started it, or the loop that it is in."""


class ProjectEvent(SQLModel, table=True):
    """One row of a project's history; `seq` is gap-free per project, in the order of commit."""

    __tablename__ = "project_events"
    __table_args__ = (CheckConstraint("seq >= 1", name="seq"),)

    project_id: UUID = identity(primary=True)
    seq: int = Field(primary_key=True)
    type: str
    at: datetime = moment(optional=False)
    data: dict[str, Any] = document(optional=False)
