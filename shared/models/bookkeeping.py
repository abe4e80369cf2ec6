"""What is kept about many tasks: the keys they came under, how many have ended, what is done to many at once."""

from datetime import date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    Index,
    LargeBinary,
    Numeric,
    text,
)
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import counter, document, moment, number


class SubmissionKey(SQLModel, table=True):
    """A key under which a user has submitted a task, and until when a repeat means that task."""

    __tablename__ = "submission_keys"
    __table_args__ = (
        CheckConstraint("kind IN ('idempotency', 'dedupe')", name="kind"),
        Index("submission_keys_expiry", "expires_at"),
    )

    user_id: str = Field(primary_key=True)
    kind: str = Field(primary_key=True)
    key: str = Field(primary_key=True)
    task_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    body_hash: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    expires_at: datetime = moment(optional=False)


class TaskTally(SQLModel, table=True):
    """So many tasks of a user and an actor at a provider came into a state, or left it, and are not in the counts yet.

    Told are `submitted`, `blocked` and the terminal states: what else lives has been submitted and has not ended.

    Counting a million rows takes its time and one counter would be a queue for everybody, so changes are appended, and
    now and then folded into the counts. A tally that names no actor means the provider's first: those who wrote it knew
    no other.
    """

    __tablename__ = "task_tallies"

    tally_id: int = number()
    user_id: str
    provider: str
    status: str
    tasks: int
    actor: str = Field(default="", sa_column_kwargs={"server_default": ""})


class TaskCount(SQLModel, table=True):
    """How many tasks of a user and an actor at a provider were submitted, are blocked or have ended, but for the
    tallies; `''` is everybody."""

    __tablename__ = "task_counts"

    user_id: str = Field(primary_key=True)
    provider: str = Field(primary_key=True)
    status: str = Field(primary_key=True)
    tasks: int
    actor: str = Field(default="", primary_key=True, sa_column_kwargs={"server_default": ""})


class BulkJob(SQLModel, table=True):
    """A change to many tasks, done in chunks: each chunk and its progress are one transaction."""

    __tablename__ = "bulk_jobs"
    __table_args__ = (
        CheckConstraint("action IN ('retry', 'cancel')", name="action"),
        CheckConstraint("state IN ('running', 'waiting-for-canary', 'finished', 'stopped')", name="state"),
        Index("bulk_jobs_unfinished", "bulk_id", postgresql_where=text("state IN ('running', 'waiting-for-canary')")),
    )

    bulk_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    action: str
    filter: dict[str, Any] = document(optional=False)
    user_id: str
    scope_user_id: str | None = None
    state: str = Field(default="running", sa_column_kwargs={"server_default": "running"})
    matched: int
    done: int = counter()
    changed: int = counter()
    last_task_id: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    canary: int | None = None
    canary_ids: list[UUID] = Field(
        default_factory=list,
        sa_column=Column(ARRAY(PG_UUID(as_uuid=True)), nullable=False, server_default=text("'{}'")),
    )
    reason: str | None = None
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)
    duplicates: int = counter()
    """So many were left as they are, because a live task has their `dedupe_key`."""
    requeued: int = counter()
    """So many were tasks of projects' runs: their items are first in their backlogs again."""


class TaskQueueMetric(SQLModel, table=True):
    """One day of one actor, agent, provider, user and project: what was created then, and what has become of it.

    Sums and counts that can be added up over rows; averages and percentiles are made of them when somebody asks. Whole
    numbers, so that a day that is counted anew comes to the same. `''` is none.
    """

    __tablename__ = "task_queue_metrics"
    __table_args__ = (Index("task_queue_metrics_user", "user_id", "day"),)

    day: date = Field(primary_key=True)
    actor: str = Field(primary_key=True)
    subagent_type: str = Field(primary_key=True)
    provider: str = Field(primary_key=True)
    user_id: str = Field(primary_key=True)
    project_id: str = Field(primary_key=True)
    created: int
    completed: int
    failed: int
    cancelled: int
    latency_ms: int = Field(sa_column=Column(BigInteger, nullable=False))
    """Of those that completed, from their submit to their end, together."""
    waits: dict[str, Any] = document(optional=False)
    """How many waited how long for the attempt that ended them: by the numbers of logarithmic steps."""
    runs: dict[str, Any] = document(optional=False)
    """And how long that attempt took."""
    running: int
    heartbeat_delay_ms: int = Field(sa_column=Column(BigInteger, nullable=False))
    """Of those that ran when this was counted, together."""
    prompt_tokens: int | None = Field(default=None, sa_column=Column(BigInteger))
    completion_tokens: int | None = Field(default=None, sa_column=Column(BigInteger))
    cost_usd: Decimal | None = Field(default=None, sa_column=Column(Numeric))
    failed_cost_usd: Decimal | None = Field(default=None, sa_column=Column(Numeric))
    """The part of it that went into tasks that are dead."""
    updated_at: datetime = moment(optional=False)
