"""What agents did, the vectors that it is found by, and the models that those are of."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, REAL, CheckConstraint, Column, Index, LargeBinary, text
from sqlalchemy.dialects.postgresql import TSVECTOR
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import document, moment
from windlass.shared.sql_fragments import words
from windlass.shared.states import TERMINAL


class AgentEvent(SQLModel, table=True):
    """One end of one life of a task: what was asked, what came out and how it ended, short. The subscriber of memory
    writes it after the end is committed; what makes it findable is filled in when it is gathered."""

    __tablename__ = "agent_events"
    __table_args__ = (
        CheckConstraint(f"status IN {words(TERMINAL)}", name="status"),
        Index("agent_events_task_id_life_key", "task_id", "life", unique=True),
        Index("agent_events_user", "user_id", "event_id"),
        Index("agent_events_project", "project_id", "event_id", postgresql_where=text("project_id IS NOT NULL")),
        Index("agent_events_ungathered", "event_id", postgresql_where=text("gathered_at IS NULL")),
        Index(
            "agent_events_lexemes", "lexemes", postgresql_using="gin", postgresql_where=text("lexemes IS NOT NULL")
        ),  # an end has none yet, and Postgres would file that as well
    )

    event_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    task_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    life: int
    attempt: int
    user_id: str
    actor: str
    provider: str
    subagent_type: str | None = None
    project_id: str | None = None
    workflow_id: str | None = None
    status: str
    title: str
    text: str
    data: dict[str, Any] = document(optional=False)
    at: datetime = moment(optional=False)
    lexemes: Any = Field(default=None, sa_column=Column(TSVECTOR))
    gathered_at: datetime | None = moment()
    """When its words were sorted in and its vectors were asked for."""


class EmbeddingModel(SQLModel, table=True):
    """Who makes vectors. New events get those of every model that is not retired; questions are asked in the active
    one's alone."""

    __tablename__ = "embedding_models"
    __table_args__ = (
        CheckConstraint("state IN ('building', 'active', 'retired')", name="state"),
        CheckConstraint("dimensions BETWEEN 1 AND 4096", name="dimensions"),
        Index("embedding_models_provider_name_key", "provider", "name", unique=True),
        Index("embedding_models_active", "state", unique=True, postgresql_where=text("state = 'active'")),
    )

    model_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    name: str
    provider: str
    dimensions: int
    state: str = Field(default="building", sa_column_kwargs={"server_default": "building"})
    filled_to: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    """The oldest event whose vector was asked for, of those that were there before the model was."""
    is_filled: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    """All of those have been asked for."""
    activate_when_filled: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    """By the janitor, when no job of it waits any more."""
    created_at: datetime = moment(optional=False)
    activated_at: datetime | None = moment()


class Embedding(SQLModel, table=True):
    """An event's vector by one model, of unit length; none while a job has yet to bring it."""

    __tablename__ = "embeddings"
    __table_args__ = (Index("embeddings_missing", "model_id", postgresql_where=text("vector IS NULL")),)

    event_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    model_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    vector: list[float] | None = Field(default=None, sa_column=Column(ARRAY(REAL)))


class EmbeddingJob(SQLModel, table=True):
    """Up to 64 events whose vectors one call brings; its state follows from what becomes of its `embed` task."""

    __tablename__ = "embedding_jobs"
    __table_args__ = (
        CheckConstraint("state IN ('waiting', 'done', 'failed')", name="state"),
        Index("embedding_jobs_task_id_key", "task_id", unique=True),
        Index("embedding_jobs_model", "model_id"),
        Index("embedding_jobs_open", "state", "job_id", postgresql_where=text("state <> 'done'")),
    )

    job_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    model_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    task_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    event_ids: list[UUID] = Field(sa_column=Column(ARRAY(PG_UUID(as_uuid=True)), nullable=False))
    state: str = Field(default="waiting", sa_column_kwargs={"server_default": "waiting"})
    error: dict[str, Any] | None = document()
    created_at: datetime = moment(optional=False)
    updated_at: datetime = moment(optional=False)


class QuestionVector(SQLModel, table=True):
    """The vector of something that was asked, kept for a while; of the question itself only its hash."""

    __tablename__ = "question_vectors"
    __table_args__ = (Index("question_vectors_created", "created_at"),)

    model_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    question_hash: bytes = Field(sa_column=Column(LargeBinary, primary_key=True))
    vector: list[float] = Field(sa_column=Column(ARRAY(REAL), nullable=False))
    created_at: datetime = moment(optional=False)
