"""The processes: who runs tasks, and what dispatchers and janitors say of themselves."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Column,
    Index,
    Text,
    text,
)
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import counter, document, moment


class Worker(SQLModel, table=True):
    """A process that runs tasks: what it serves, how much at once, and when it was last heard of."""

    __tablename__ = "workers"
    __table_args__ = (
        CheckConstraint("state IN ('active', 'stopping', 'stopped', 'lost')", name="state"),
        CheckConstraint("capacity > 0", name="capacity"),
        Index("workers_live", "worker_id", postgresql_where=text("state IN ('active', 'stopping')")),
    )

    worker_id: str = Field(primary_key=True)
    hostname: str
    pid: int
    queues: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False))
    capacity: int
    """All its places together."""
    state: str = Field(default="active", sa_column_kwargs={"server_default": "active"})
    started_at: datetime = moment(optional=False)
    heartbeat_at: datetime = moment(optional=False)
    stop_reason: str | None = None
    lost_tasks: int = counter()
    actor_versions: dict[str, Any] = document(optional=False)
    broken: dict[str, Any] = document(optional=False)
    drain_requested_at: datetime | None = moment()
    drain_reason: str | None = None
    claim_epoch: int = counter()
    """Raised when it recalls a call whose answer was lost: what it asked for in an earlier one is void."""
    whereabouts: dict[str, Any] = document(optional=False)
    """Machine, namespaces, container and process numbers: by these who starts in its place can prove its death."""
    async_capacity: int = counter()
    """How many of them are for attempts that hold no thread."""
    async_queues: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False, server_default=text("'{}'::text[]")))
    """Those of its queues that these serve; all others are served by the rest."""


class ServiceReport(SQLModel, table=True):
    """The last report of a dispatcher, a janitor or an orchestrator; `/health` shows it."""

    __tablename__ = "service_reports"
    __table_args__ = (CheckConstraint("service IN ('dispatcher', 'janitor', 'orchestrator')", name="service"),)

    service: str = Field(primary_key=True)
    instance_id: str = Field(primary_key=True)
    healthy: bool
    details: dict[str, Any] = document(optional=False)
    reported_at: datetime = moment(optional=False)


class FunctionSet(SQLModel, table=True):
    """The functions of one build, in a schema of their own; `migrated_at` is when such a build last migrated."""

    __tablename__ = "function_sets"

    name: str = Field(primary_key=True)
    level: int = counter()
    """Not read. The `migrate` of an earlier edition writes it."""
    migrated_at: datetime = moment(optional=False)
