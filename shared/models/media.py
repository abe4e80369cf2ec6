"""What was ordered from providers of media, and the files that came of it."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, CheckConstraint, Column, Index, LargeBinary, text
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import document, moment
from windlass.shared.order_states import OrderState
from windlass.shared.sql_fragments import words


class Generation(SQLModel, table=True):
    """One order for paid work, from the intent to its end. `status` is moved by `move_order` and nothing else."""

    __tablename__ = "generations"
    __table_args__ = (
        CheckConstraint(f"status IN {words(OrderState)}", name="status"),
        CheckConstraint("status NOT IN ('open', 'fetching', 'completed') OR provider_job_id IS NOT NULL", name="job"),
        Index("generations_task", "task_id", "generation_id"),
        Index("generations_job", "provider", "provider_job_id", postgresql_where=text("provider_job_id IS NOT NULL")),
        Index(
            "generations_workflow_run", "workflow_run_id", "generation_id",
            postgresql_where=text("workflow_run_id IS NOT NULL"),
        ),
        Index("generations_user", "user_id", "generation_id"),
        Index(
            "generations_interaction", "interaction_id", "generation_id",
            postgresql_where=text("interaction_id IS NOT NULL"),
        ),
        Index("generations_unended", "provider", postgresql_where=text(
            "status IN ('intended', 'open', 'fetching', 'unknown') AND NOT given_up")),
        Index("generations_callback", "callback_hash", unique=True),
    )  # fmt: skip

    generation_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    task_id: UUID | None = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=True))
    """None where a user has brought the file."""
    attempt: int
    user_id: str
    provider: str
    operation: str
    status: str
    request: dict[str, Any] = document(optional=False)
    response: Any = document()
    provider_job_id: str | None = None
    callback_hash: bytes = Field(sa_column=Column(LargeBinary, nullable=False))
    callback: Any = document()
    callback_at: datetime | None = moment()
    workflow_run_id: str | None = None
    interaction_id: str | None = None
    prompt_id: str | None = None
    source_data: Any = document()
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)
    ended_at: datetime | None = moment()
    looked_at: datetime | None = moment()
    given_up: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})


class Content(SQLModel, table=True):
    """One file of a generation; the row is written when the file is safe."""

    __tablename__ = "contents"
    __table_args__ = (
        CheckConstraint("index >= 0 AND size_bytes >= 0", name="numbers"),
        Index("contents_generation", "generation_id", "index", unique=True),
    )

    content_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    generation_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    index: int
    provider_url: str
    media_type: str
    extension: str
    place: str
    size_bytes: int = Field(sa_column=Column(BigInteger, nullable=False))
    sha256: str
    created_at: datetime = moment(optional=False)
