"""Webhooks: endpoints, what they are told (each body once), its deliveries, and every try."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, BigInteger, CheckConstraint, Column, Computed, Identity, Index, LargeBinary, Text, text
from sqlalchemy import Boolean as SqlBoolean
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import counter, document, moment, number
from windlass.shared.models.projects import identity
from windlass.shared.sql_fragments import words
from windlass.shared.webhook_states import STORED, EndpointState, Scope

LISTENS = "events <> '{}'::text[] AND deleted_at IS NULL"


def _flag() -> Any:
    return Field(default=False, sa_column_kwargs={"server_default": text("false")})


class Webhook(SQLModel, table=True):
    """An endpoint. The row is written when its state changes, and not for its deliveries. It is locked before its
    deliveries and their tasks."""

    __tablename__ = "webhooks"
    __table_args__ = (
        CheckConstraint(f"state IN {words(EndpointState)}", name="state"),
        CheckConstraint(f"scope IN {words(Scope)}", name="scope"),
        Index("webhooks_url", "user_id", "url", unique=True, postgresql_where=text("deleted_at IS NULL")),
        Index("webhooks_listening", "webhook_id", postgresql_where=text("listens")),
        Index("webhooks_probed", "probe_at", postgresql_where=text("probe_at IS NOT NULL")),
    )

    webhook_id: UUID = identity(primary=True)
    user_id: str
    url: str
    events: list[str] = Field(sa_column=Column(ARRAY(Text), nullable=False, server_default=text("'{}'")))
    filter: dict[str, Any] = document(optional=False)
    scope: str = Field(sa_column_kwargs={"server_default": Scope.OWN.value})
    description: str | None = None
    listens: bool = Field(sa_column=Column(SqlBoolean, Computed(LISTENS, persisted=True), nullable=False))
    """Whether it hears of anything but what names it."""
    secret: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    """Sealed, as the one before it."""
    previous_secret: bytes | None = Field(default=None, sa_column=Column(LargeBinary))
    previous_until: datetime | None = moment()
    state: str = Field(sa_column_kwargs={"server_default": EndpointState.ENABLED.value})
    reason: str | None = None
    failing_since: datetime | None = moment()
    changed_at: datetime = moment(optional=False)
    """When its state last changed: what was tried before says nothing about it any more."""
    probe_at: datetime | None = moment()
    """Disabled after a long failure: when its oldest delivery tries once more."""
    probing: bool = _flag()
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)
    deleted_at: datetime | None = moment()


class WebhookBody(SQLModel, table=True):
    """What is told, byte for byte as it is signed: once, for however many endpoints."""

    __tablename__ = "webhook_bodies"

    body_id: int = Field(default=None, sa_column=Column(BigInteger, Identity(always=True), primary_key=True))
    body: str = Field(sa_column=Column(Text, nullable=False))


class Delivery(SQLModel, table=True):
    """Something that one endpoint receives: its id is the `webhook-id` of every try."""

    __tablename__ = "deliveries"
    __table_args__ = (
        CheckConstraint(f"state IN {words(STORED)}", name="state"),
        CheckConstraint("(state = 'delivered') = (delivered_at IS NOT NULL)", name="delivered"),
        Index("deliveries_once", "webhook_id", "subject", "life", "seq", unique=True),
        Index("deliveries_task", "task_id"),
        Index("deliveries_webhook", "webhook_id", "delivery_id"),
        Index("deliveries_waiting", "webhook_id", "delivery_id", postgresql_where=text("state = 'waiting'")),
    )

    delivery_id: UUID = identity(primary=True)
    webhook_id: UUID = identity()
    body_id: int = Field(sa_column=Column(BigInteger, nullable=False))
    type: str
    subject: str
    """The id of the task, the project or the workflow, or the provider's name."""
    life: int = Field(sa_column_kwargs={"server_default": text("1")})
    seq: int = Field(sa_column=Column(BigInteger, nullable=False))
    named: bool = _flag()
    """The task named the endpoint: what it subscribes to makes no difference."""
    state: str = Field(sa_column_kwargs={"server_default": "waiting"})
    reason: str | None = None
    """Why it failed. While it waits: why it is about to be cancelled."""
    task_id: UUID = identity()
    """The task that carries it now."""
    attempts: int = counter()
    last_status: int | None = None
    created_at: datetime = moment(optional=False)
    delivered_at: datetime | None = moment()


class DeliveryTry(SQLModel, table=True):
    """One answer of an endpoint, or none; the beginning of what it said is for its owner alone."""

    __tablename__ = "delivery_tries"
    __table_args__ = (
        Index("delivery_tries_once", "task_id", "attempt", unique=True),
        Index("delivery_tries_delivery", "delivery_id", "try_id"),
        Index("delivery_tries_webhook", "webhook_id", "try_id"),
    )

    try_id: int = number()
    delivery_id: UUID = identity()
    webhook_id: UUID = identity()
    task_id: UUID = identity()
    attempt: int
    at: datetime = moment(optional=False)
    delivered: bool = Field(sa_column=Column(SqlBoolean, nullable=False))
    status_code: int | None = None
    elapsed_ms: int | None = None
    error: str | None = None
    excerpt: str | None = None
    gone: bool = _flag()
    """The endpoint asked for no more deliveries: 410, or the header `webhook-delivery: disable`."""
