"""The tables, declared once; Alembic's migrations are tested to produce exactly these.

Foreign keys are left out on the hot path on purpose: checking one would lock a shared row (the provider's, the task's)
at every insert, tasks and events are never deleted, and the functions in `shared/store/functions` write both sides.
"""

from datetime import date, datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, CheckConstraint, Column, Computed, Index, MetaData, SmallInteger, Text, text
from sqlalchemy.dialects.postgresql import JSONB, TIMESTAMP
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlalchemy.types import UserDefinedType
from sqlmodel import Field, SQLModel

from shared.states import TERMINAL, WAITING, Lane, State

SQLModel.metadata.naming_convention = MetaData(
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "ck": "%(table_name)s_%(constraint_name)s_check",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
    }
).naming_convention


class Xid8(UserDefinedType[int]):
    """Postgres' 64-bit transaction id, which never wraps around."""

    cache_ok = True

    def get_col_spec(self, **_options: Any) -> str:
        return "XID8"


def words(values: tuple[str, ...] | type[State] | type[Lane]) -> str:
    """`('queued', 'retrying')`: a list of words as SQL writes it."""
    return "(" + ", ".join(f"'{value}'" for value in values) + ")"


def moment(*, optional: bool = True) -> Any:
    return Field(
        default=None,
        sa_column=Column(
            TIMESTAMP(timezone=True),
            nullable=optional,
            server_default=None if optional else text("clock_timestamp()"),
        ),
    )


def document(*, optional: bool = True) -> Any:
    return Field(
        default=None,
        sa_column=Column(JSONB, nullable=optional, server_default=None if optional else text("'{}'::jsonb")),
    )


def counter() -> Any:
    return Field(default=0, sa_column_kwargs={"server_default": text("0")})


class Task(SQLModel, table=True):
    """One piece of work. `status` is moved by the functions in `shared/store/functions` and by nothing else."""

    __tablename__ = "tasks"
    __table_args__ = (
        CheckConstraint(f"status IN {words(State)}", name="status"),
        CheckConstraint(f"lane IN {words(Lane)}", name="lane"),
        CheckConstraint("priority BETWEEN 0 AND 9", name="priority"),
        CheckConstraint(
            "attempt >= 0 AND retry_count >= 0 AND max_retries >= 0 AND interrupt_count >= 0"
            " AND stall_count >= 0 AND rate_limited_count >= 0 AND doorbell_count >= 0 AND report_count >= 0"
            " AND unmet >= 0 AND last_seq >= 1",
            name="counters",
        ),
        CheckConstraint("timeout_seconds > 0", name="timeout"),
        CheckConstraint(
            "(status = 'running') = (lease_expires_at IS NOT NULL)"
            " AND (status <> 'running' OR (claim_token IS NOT NULL AND worker_id IS NOT NULL AND attempt > 0))",
            name="lease",
        ),
        CheckConstraint(f"(status IN {words(TERMINAL)}) = (completed_at IS NOT NULL)", name="terminal"),
        CheckConstraint("status = 'completed' OR result IS NULL", name="result"),
        CheckConstraint("status <> 'dead' OR error IS NOT NULL", name="dead"),
        CheckConstraint(
            "CASE status WHEN 'blocked' THEN unmet > 0"
            " WHEN 'dead' THEN true WHEN 'cancelled' THEN true ELSE unmet = 0 END",
            name="unmet",
        ),
        CheckConstraint(
            "(doorbell_token IS NULL) = (doorbell_at IS NULL)"
            f" AND (doorbell_token IS NULL OR status IN {words(WAITING)})",
            name="doorbell",
        ),
        # The live work, each question its own small index: history costs them nothing however long it grows.
        Index(
            "tasks_due",
            "provider", "lane", "priority", "available_at", "task_id",
            postgresql_where=text(f"status IN {words(WAITING)} AND doorbell_token IS NULL"),
        ),
        Index(
            "tasks_rung",
            "provider",
            postgresql_where=text(f"status IN {words(WAITING)} AND doorbell_token IS NOT NULL"),
        ),
        Index("tasks_running", "provider", postgresql_where=text("status = 'running'")),
        Index("tasks_blocked", "task_id", postgresql_where=text("status = 'blocked'")),
        Index(
            "tasks_expiring",
            "expires_at",
            postgresql_where=text("status IN ('blocked', 'queued', 'retrying') AND expires_at IS NOT NULL"),
        ),
    )  # fmt: skip

    task_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    actor: str
    task_type: str | None = None
    provider: str
    queue: str = Field(sa_column=Column(Text, Computed("actor || '.' || provider", persisted=True), nullable=False))
    lane: str = Field(sa_column_kwargs={"server_default": Lane.FRESH.value})
    status: str
    priority: int = Field(default=2, sa_column=Column(SmallInteger, nullable=False, server_default=text("2")))
    payload: dict[str, Any] = document(optional=False)
    result: Any = document()
    error: dict[str, Any] | None = document()
    progress: dict[str, Any] | None = document()
    checkpoint: Any = document()
    attempt: int = counter()
    retry_count: int = counter()
    max_retries: int = Field(default=3, sa_column_kwargs={"server_default": text("3")})
    interrupt_count: int = counter()
    stall_count: int = counter()
    rate_limited_count: int = counter()
    available_at: datetime = moment(optional=False)
    expires_at: datetime | None = moment()
    max_age_seconds: float | None = None
    timeout_seconds: float
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)
    started_at: datetime | None = moment()
    completed_at: datetime | None = moment()
    worker_id: str | None = None
    claim_token: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    heartbeat_at: datetime | None = moment()
    lease_expires_at: datetime | None = moment()
    cancel_requested: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    doorbell_token: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    doorbell_at: datetime | None = moment()
    doorbell_count: int = counter()
    report_count: int = counter()
    last_seq: int = Field(default=1, sa_column_kwargs={"server_default": text("1")})
    unmet: int = counter()
    user_id: str
    tags: list[str] = Field(
        default_factory=list, sa_column=Column(ARRAY(Text), nullable=False, server_default=text("'{}'"))
    )
    project_id: str | None = None
    workflow_id: str | None = None
    workflow_run_id: str | None = None
    interaction_id: str | None = None
    parent_task_id: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    depends_on: list[UUID] = Field(
        default_factory=list,
        sa_column=Column(ARRAY(PG_UUID(as_uuid=True)), nullable=False, server_default=text("'{}'")),
    )
    dedupe_key: str | None = None
    provider_job_id: str | None = None
    exit_code: int | None = None


class TaskEvent(SQLModel, table=True):
    """One row of a task's history; `seq` is gap-free per task, in the order of commit."""

    __tablename__ = "task_events"
    __table_args__ = (CheckConstraint("seq >= 1", name="seq"),)

    task_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    seq: int = Field(primary_key=True)
    type: str
    at: datetime = moment(optional=False)
    attempt: int
    data: dict[str, Any] = document(optional=False)
    xid: int = Field(sa_column=Column(Xid8, nullable=False, server_default=text("pg_current_xact_id()")))


class TaskDependency(SQLModel, table=True):
    """An edge: the child waits for the parent."""

    __tablename__ = "task_dependencies"
    __table_args__ = (
        CheckConstraint("parent_id <> child_id", name="no_loop"),
        Index("task_dependencies_child", "child_id"),
    )

    parent_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    child_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))


class Provider(SQLModel, table=True):
    """What is configured for a provider and what an operator has set over it; its row is the lock of its slots."""

    __tablename__ = "providers"
    __table_args__ = (
        CheckConstraint("configured_limit >= 0 AND limit_override >= 0", name="limit"),
        CheckConstraint("dispatch_version >= 0", name="dispatch_version"),
    )

    name: str = Field(primary_key=True)
    actor: str
    configured_limit: int | None = None
    limit_override: int | None = None
    lane_credit: int = counter()
    dispatch_version: int = counter()


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
    state: str = Field(default="active", sa_column_kwargs={"server_default": "active"})
    started_at: datetime = moment(optional=False)
    heartbeat_at: datetime = moment(optional=False)
    stop_reason: str | None = None


class ServiceReport(SQLModel, table=True):
    """What a dispatcher or janitor last said of itself; `/health` repeats it."""

    __tablename__ = "service_reports"
    __table_args__ = (CheckConstraint("service IN ('dispatcher', 'janitor')", name="service"),)

    service: str = Field(primary_key=True)
    instance_id: str = Field(primary_key=True)
    healthy: bool
    details: dict[str, Any] = document(optional=False)
    reported_at: datetime = moment(optional=False)


class TaskQueueMetric(SQLModel, table=True):
    """One day of one actor: what was created then, and what has become of it."""

    __tablename__ = "task_queue_metrics"

    day: date = Field(primary_key=True)
    actor: str = Field(primary_key=True)
    created: int
    completed: int
    failed: int
    average_latency_seconds: float | None = None
    error_rate: float | None = None
    heartbeat_delay_seconds: float | None = None
    updated_at: datetime = moment(optional=False)


class ApiKey(SQLModel, table=True):
    """A key that may use the API; the secret itself is never stored."""

    __tablename__ = "api_keys"
    __table_args__ = (CheckConstraint("role IN ('user', 'viewer', 'admin')", name="role"),)

    key_id: str = Field(primary_key=True)
    secret_hash: bytes
    role: str
    user_id: str
    created_at: datetime = moment(optional=False)
    expires_at: datetime | None = moment()
    revoked_at: datetime | None = moment()
