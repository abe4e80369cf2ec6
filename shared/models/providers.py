"""Providers: their settings, their breaker and their history."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    CheckConstraint,
    Column,
    Index,
    Integer,
    text,
)
from sqlalchemy.dialects.postgresql import TIMESTAMP
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import counter, document, moment, number


class Provider(SQLModel, table=True):
    """What is configured for a provider and what an operator has set over it; its row is the lock of its slots."""

    __tablename__ = "providers"
    __table_args__ = (
        CheckConstraint("configured_limit >= 0 AND limit_override >= 0", name="limit"),
        CheckConstraint("retry_share BETWEEN 0 AND 100", name="retry_share"),
        CheckConstraint("breaker_mode IN ('auto', 'open', 'closed')", name="breaker_mode"),
        CheckConstraint("breaker_state IN ('closed', 'open', 'half-open')", name="breaker_state"),
        CheckConstraint("(breaker_state = 'closed') = (breaker_until IS NULL)", name="breaker_until"),
        CheckConstraint("cardinality(rate_moments) = cardinality(rate_counts)", name="rate_window"),
    )

    name: str = Field(primary_key=True)
    actor: str
    configured_limit: int | None = None
    limit_override: int | None = None
    lane_credit: int = counter()
    configured_rate: dict[str, Any] | None = document()
    rate_override: dict[str, Any] | None = document()
    paused: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    paused_until: datetime | None = moment()
    pause_reason: str | None = None
    trial_token: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    breaker_mode: str = Field(default="auto", sa_column_kwargs={"server_default": "auto"})
    breaker_state: str = Field(default="closed", sa_column_kwargs={"server_default": "closed"})
    breaker_until: datetime | None = moment()
    breaker_reason: str | None = None
    breaker_changed_at: datetime | None = moment()
    rate_moments: list[datetime] = Field(
        default_factory=list,
        sa_column=Column(ARRAY(TIMESTAMP(timezone=True)), nullable=False, server_default=text("'{}'")),
    )
    """The sliding window of its rate: when places were taken, and how many at each of these moments."""
    rate_counts: list[int] = Field(
        default_factory=list, sa_column=Column(ARRAY(Integer), nullable=False, server_default=text("'{}'"))
    )
    retry_share: int = Field(default=30, sa_column_kwargs={"server_default": text("30")})
    """Percent of the starts that go to retries while both lanes have something due."""


class Queue(SQLModel, table=True):
    """A pair of actor and provider that has been configured: what waits for it is carried by the queue of RabbitMQ
    that has its name. It goes with its actor, when an admin has that forgotten and no task waits."""

    __tablename__ = "queues"
    __table_args__ = (Index("queues_provider", "provider"),)

    queue: str = Field(primary_key=True)
    provider: str
    actor: str


class Actor(SQLModel, table=True):
    """What the functions must know of an actor: how many of its tasks with the same concurrency key may run at once."""

    __tablename__ = "actors"
    __table_args__ = (CheckConstraint("concurrency_limit > 0", name="concurrency_limit"),)

    name: str = Field(primary_key=True)
    concurrency_limit: int | None = None


class ProviderResult(SQLModel, table=True):
    """How an attempt went, as far as it says something about its provider: what the breaker's window looks at.

    Unlogged: after a crash of Postgres the window begins anew, and no commit waits for these rows to reach the disk.
    """

    __tablename__ = "provider_results"
    __table_args__ = (
        Index("provider_results_window", "provider", "at"),
        {"prefixes": ["UNLOGGED"]},
    )

    result_id: int = number()
    provider: str
    at: datetime = moment(optional=False)
    failed: bool
    task_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))


class ProviderEvent(SQLModel, table=True):
    """What happened to a provider as a whole, and why: its breaker, its pauses, its limits."""

    __tablename__ = "provider_events"
    __table_args__ = (Index("provider_events_history", "provider", "event_id"),)

    event_id: int = number()
    provider: str
    type: str
    at: datetime = moment(optional=False)
    reason: str
    data: dict[str, Any] = document(optional=False)
