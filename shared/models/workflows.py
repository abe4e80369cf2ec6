"""Workflows: graphs of tasks, counted; what stands for tasks that are not there yet; and their stories."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, CheckConstraint, Column, Computed, Index, Text, text
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import counter, document, moment
from windlass.shared.workflow_states import STATUS_OF_COUNTS, STATUS_OF_NODE


class Workflow(SQLModel, table=True):
    """Counts are moved by the teller of the tasks' moves, in their transactions, and the status follows from them."""

    __tablename__ = "workflows"
    __table_args__ = (
        CheckConstraint(
            "failures >= 0 AND live >= 0 AND completed >= 0 AND dead >= 0 AND cancelled >= 0"
            " AND total = live + completed + dead + cancelled",
            name="counts",
        ),
        CheckConstraint("failure_threshold > 0", name="failure_threshold"),
        Index("workflows_user", "user_id", "workflow_id"),
        Index("workflows_status", "status", "workflow_id"),
        Index("workflows_status_user", "user_id", "status", "workflow_id"),
        Index("workflows_name", "name", "workflow_id"),
        Index("workflows_tags", "tags", postgresql_using="gin"),
        Index("workflows_unfinished", "workflow_id", postgresql_where=text("unfinished")),
    )

    workflow_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    user_id: str
    name: str
    status: str = Field(sa_column=Column(Text, Computed(STATUS_OF_COUNTS, persisted=True), nullable=False))
    tags: list[str] = Field(
        default_factory=list, sa_column=Column(ARRAY(Text), nullable=False, server_default=text("'{}'"))
    )
    failure_threshold: int | None = None
    failures: int = counter()
    total: int = counter()
    live: int = counter()
    completed: int = counter()
    dead: int = counter()
    cancelled: int = counter()
    cancel_requested: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    unfinished: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    """Not all of its tasks have been held, let go on or cancelled yet, as it should be: the janitor goes on."""
    has_nodes: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    last_seq: int = Field(default=1, sa_column_kwargs={"server_default": text("1")})
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)
    resumed_at: datetime | None = moment()
    completed_at: datetime | None = moment()
    schedule_id: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    """The schedule that started it."""


class WorkflowNode(SQLModel, table=True):
    """What stands for the tasks of a `for_each`, from the submit on: it becomes one for each element of a list, once,
    when the list is there. Others depend on it as on a task."""

    __tablename__ = "workflow_nodes"
    __table_args__ = (
        CheckConstraint("live >= 0 AND completed >= 0 AND dead >= 0 AND cancelled >= 0", name="counts"),
        CheckConstraint("ended_as IN ('dead', 'cancelled')", name="ended_as"),
        CheckConstraint("ended_as IS NULL OR expanded_at IS NULL", name="once"),
        Index("workflow_nodes_workflow_id_key_key", "workflow_id", "key", unique=True),
        Index("workflow_nodes_source", "source"),
        Index(
            "workflow_nodes_ready",
            "node_id",
            postgresql_where=text("ready_at IS NOT NULL AND expanded_at IS NULL AND ended_as IS NULL"),
        ),
    )

    node_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    workflow_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    key: str
    source: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    """The task, or the node, whose result has the list."""
    source_is_node: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    path: str = Field(default="", sa_column_kwargs={"server_default": ""})
    template: dict[str, Any] = document(optional=False)
    """A submission as each of its tasks is stored, but for what differs."""
    status: str = Field(sa_column=Column(Text, Computed(STATUS_OF_NODE, persisted=True), nullable=False))
    children: int | None = None
    live: int = counter()
    completed: int = counter()
    dead: int = counter()
    cancelled: int = counter()
    ended_as: str | None = None
    """How it ended without tasks of its own."""
    error: dict[str, Any] | None = document()
    ready_at: datetime | None = moment()
    expanded_at: datetime | None = moment()


class WorkflowEvent(SQLModel, table=True):
    """One row of a workflow's history; `seq` is gap-free per workflow."""

    __tablename__ = "workflow_events"
    __table_args__ = (Index("workflow_events_unsaid", "workflow_id", "seq", postgresql_where=text("NOT said")),)

    workflow_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    seq: int = Field(primary_key=True)
    type: str
    at: datetime = moment(optional=False)
    data: dict[str, Any] = document(optional=False)
    said: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    """Whether a janitor has said so in its log."""
