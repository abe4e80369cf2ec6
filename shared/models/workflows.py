"""Workflows: graphs of tasks, counted; what stands for tasks that are not there yet; and their stories."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, CheckConstraint, Column, Computed, Index, Text, text
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import counter, document, moment
from windlass.shared.workflow_states import STATUS_OF_COUNTS


class Workflow(SQLModel, table=True):
    """The counts are those of its tasks and nodes when its outbox rows were handled last, and the status follows from
    them."""

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
    has_nodes: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    last_seq: int = Field(default=1, sa_column_kwargs={"server_default": text("1")})
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)
    resumed_at: datetime | None = moment()
    completed_at: datetime | None = moment()
    schedule_id: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    """The schedule that started it."""


class WorkflowNode(SQLModel, table=True):
    """A `for_each` node. It becomes one task for each element of a list, once, when the list is there. Other tasks
    depend on its barrier, which has the node's id, key and status."""

    __tablename__ = "workflow_nodes"
    __table_args__ = (Index("workflow_nodes_workflow", "workflow_id"),)

    node_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    workflow_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    template: dict[str, Any] = document(optional=False)
    """A submission as each of its tasks is stored, but for what differs."""
    error: dict[str, Any] | None = document()
    """Why it ended without tasks of its own."""


class WorkflowEvent(SQLModel, table=True):
    """One row of a workflow's history; `seq` is gap-free per workflow."""

    __tablename__ = "workflow_events"

    workflow_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    seq: int = Field(primary_key=True)
    type: str
    at: datetime = moment(optional=False)
    data: dict[str, Any] = document(optional=False)
