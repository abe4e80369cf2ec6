"""What the engine passes on to the features: moves of tasks, and the subjects whose handling failed."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Boolean as SqlBoolean
from sqlalchemy import CheckConstraint, Column, Index, text
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import Xid8, counter, document, moment, number


class OutboxMove(SQLModel, table=True):
    """A move that one feature has to handle. The transaction that moves the task writes it, and the transaction that
    handles it deletes it. Events without a task have no `task_id`."""

    __tablename__ = "outbox"
    __table_args__ = (
        Index("outbox_xid", "xid"),
        Index("outbox_subject", "feature", "subject", "task_id", "seq"),
        {"postgresql_with": {"autovacuum_vacuum_scale_factor": "0", "autovacuum_vacuum_threshold": "2000"}},
    )

    id: int = number()
    xid: int = Field(default=None, sa_column=Column(Xid8, nullable=False, server_default=text("pg_current_xact_id()")))
    """The transaction that wrote the row. A look for new rows begins at the oldest transaction that was open during
    the look before it."""
    feature: str
    subject: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    """The workflow, project, schedule or task whose rows are handled together."""
    task_id: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    life: int | None = None
    seq: int | None = None
    """The number of the move's event in the task's history."""
    move: str
    status: str | None = None
    at: datetime = moment(optional=False)
    data: dict[str, Any] | None = document()


class GlobalSubscriptions(SQLModel, table=True):
    """One row: the features that receive the moves of every task, as bits of `shared/concerns.py`. A feature sets its
    bit while it needs them. Without the row none does."""

    __tablename__ = "global_subscriptions"
    __table_args__ = (CheckConstraint("is_only", name="only"),)

    is_only: bool = Field(
        default=True, sa_column=Column(SqlBoolean, primary_key=True, server_default=text("true"), autoincrement=False)
    )
    bits: int = counter()


class OutboxSubject(SQLModel, table=True):
    """A subject whose rows a feature failed to handle. All of its rows wait for the next try, so that no newer row
    overtakes a failed one."""

    __tablename__ = "outbox_subjects"

    feature: str = Field(primary_key=True)
    subject: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    tries: int = counter()
    error: str
    failed_at: datetime = moment(optional=False)
    next_try_at: datetime = moment(optional=False)
