"""What the engine offers to features that start many tasks: groups, which can be stopped, and barriers."""

from uuid import UUID

from sqlalchemy import CheckConstraint, Column, Index, Text, text
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.sql_fragments import words
from windlass.shared.states import State


class TaskGroup(SQLModel, table=True):
    """Tasks that are stopped together."""

    __tablename__ = "task_groups"
    __table_args__ = (CheckConstraint("failure_limit > 0", name="failure_limit"),)

    group_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    is_closed: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    """None of its tasks starts or is revived, and none joins."""
    failure_limit: int | None = None
    """Once this many of its tasks have failed, none of them starts."""


class GroupFailure(SQLModel, table=True):
    """A life of a task that ended dead, and not because of a parent. Deleted when it is forgiven."""

    __tablename__ = "group_failures"

    group_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    task_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    life: int = Field(primary_key=True)


class Barrier(SQLModel, table=True):
    """Stands for a number of tasks, its members. Tasks depend on it as on a task, and references read the list of its
    members' results. A feature sets its status."""

    __tablename__ = "barriers"
    __table_args__ = (
        CheckConstraint(f"status IN {words(State)}", name="status"),
        CheckConstraint("members >= 0", name="members"),
        Index("barriers_key", "group_id", "key", unique=True),
    )

    barrier_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    group_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    key: str
    """Its members are the tasks of its group with the keys `key[0]`, `key[1]` and so on."""
    status: str = Field(default="blocked", sa_column=Column(Text, nullable=False, server_default="blocked"))
    members: int | None = None
    """How many there are, once they were submitted."""
    source: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    """The task, or the barrier, whose result has the list with an element for each member."""
    source_is_barrier: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    path: str = Field(default="", sa_column_kwargs={"server_default": ""})
    """Where in that result the list is."""
