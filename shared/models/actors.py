"""Actors of the user's own: what each version takes, and the steps of a task that need not be done again."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import BigInteger, Column
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import document, moment


class ActorVersion(SQLModel, table=True):
    """A version of an actor, registered before anybody runs it; the workers' rows say which are alive. One that was
    never registered is known by its workers alone."""

    __tablename__ = "actor_versions"

    actor: str = Field(primary_key=True)
    version: str = Field(primary_key=True)
    definition: dict[str, Any] = document(optional=False)
    registered_at: datetime | None = moment()
    created_at: datetime = moment(optional=False)


class TaskStep(SQLModel, table=True):
    """A step that an attempt has finished: a later one is given its result instead of doing it again."""

    __tablename__ = "task_steps"

    task_id: UUID = Field(primary_key=True)
    name: str = Field(primary_key=True)
    attempt: int
    result: Any = document()
    elapsed_ms: int = Field(sa_column=Column(BigInteger, nullable=False))
    created_at: datetime = moment(optional=False)


class TaskChild(SQLModel, table=True):
    """A task that an attempt of another has made, by the place in its work: a later attempt that comes there again is
    given it instead of making one more."""

    __tablename__ = "task_children"

    task_id: UUID = Field(primary_key=True)
    place: str = Field(primary_key=True)
    child_id: UUID
    life: int
    """Of the parent, when it was made."""
