"""Tasks, their histories and their dependencies."""

from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import (
    ARRAY,
    DDL,
    CheckConstraint,
    Column,
    Computed,
    Index,
    SmallInteger,
    Text,
    event,
    text,
)
from sqlalchemy.dialects.postgresql import UUID as PG_UUID
from sqlmodel import Field, SQLModel

from windlass.shared.models.columns import Xid8, counter, document, moment, number
from windlass.shared.models.soundness import OF_A_TASK
from windlass.shared.sql_fragments import FINISHED, HAS_TEXT, SEARCHED_TEXT, words
from windlass.shared.states import LIVE, WAITING, Lane

PENDING_KILOBYTES = 16 * 1024
"""New entries of the text index wait in a list, which the janitor sorts in; only past this size must an end do it."""

ERROR_FINGERPRINT = (
    "(error ->> 'type') || ': ' || regexp_replace(regexp_replace(regexp_replace("
    "left(coalesce(error ->> 'message', ''), 300),"
    " '[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}', '#', 'g'),"
    " '\\m\\w*\\d\\w*\\M', '#', 'g'),"
    " '#([-.,:/+]#)+', '#', 'g')"
)
"""An error without its numbers and ids: what makes a thousand dead tasks one kind of trouble. A UUID is an id, every
word with a digit in it is one, and ids that hang together (a time, an address, 1.5) count as one."""


STORAGE = {
    "fillfactor": "85",
    "autovacuum_vacuum_scale_factor": "0.05",
    "autovacuum_analyze_scale_factor": "0.05",
    "autovacuum_vacuum_cost_limit": "2000",
}
"""What keeps a long history from costing anything.

Full pages have gaps, too small for a finished task and large enough for a new one. It would be put there, would move
out as soon as it is claimed, and leave the gap to the next: every submit would touch another page of history, and
write it whole to the log. A page that keeps some room is closed to new tasks once it is full, and one that is in it
stays in it.

The small indexes of what lives keep the entries of what has ended until a vacuum, and lists that are planned by old
statistics go wrong. By default both would wait until a fifth and a tenth of all history has changed. And a vacuum would
pause so often, not to disturb anybody, that a busy day makes dead rows faster than it removes them: it may do ten times
as much between two pauses.
"""


def finished(name: str, *columns: Any, only: str | None = None, **options: Any) -> Index:
    """An index that a task enters when it ends. While it lives, all its many updates cost such an index nothing."""
    where = FINISHED if only is None else f"{FINISHED} AND {only}"
    return Index(name, *columns, postgresql_where=text(where), **options)


def living(name: str, *columns: Any, only: str | None = None) -> Index:
    """An index that a task is in while it lives. Each of its moves writes there once more: most of these are for the
    few tasks that have what they are about."""
    where = f"status IN {words(LIVE)}"
    return Index(name, *columns, postgresql_where=text(where if only is None else f"{where} AND {only}"))


class Task(SQLModel, table=True):
    """One piece of work. `status` is moved by the functions in `shared/store/sql` and by nothing else."""

    __tablename__ = "tasks"
    __table_args__ = (
        CheckConstraint(OF_A_TASK, name="sound"),
        # What people choose is refused by its own name.
        CheckConstraint("priority BETWEEN 0 AND 9", name="priority"),
        CheckConstraint("timeout_seconds > 0", name="timeout"),
        # The live work, each question its own small index: history costs them nothing however long it grows.
        Index(
            "tasks_due",
            "queue", "lane", "priority", "available_at", "task_id",
            postgresql_include=["user_id"],  # so that a user's are counted by the index alone
            postgresql_where=text(f"status IN {words(WAITING)}"),
        ),
        # Who may have killed its workers: few, and looked for at every claim.
        Index(
            "tasks_suspected",
            "suspicion", "queue",
            postgresql_where=text(f"status IN {words(WAITING)} AND suspicion >= 2"),
        ),
        Index("tasks_of_worker", "worker_id", "claim_xid", postgresql_where=text("status = 'running'")),
        Index("tasks_running", "provider", "claim_xid", postgresql_where=text("status = 'running'")),
        Index("tasks_job_open", "provider", postgresql_where=text("job_open")),
        Index("tasks_blocked", "task_id", postgresql_where=text("status = 'blocked'")),
        Index(
            "tasks_expiring",
            "expires_at",
            postgresql_where=text("status IN ('blocked', 'queued', 'retrying') AND expires_at IS NOT NULL"),
        ),
        # Concurrency keys; a task without one is in none of these.
        Index(
            "tasks_key_taken",
            "provider", "actor", "concurrency_key",
            postgresql_where=text("concurrency_key IS NOT NULL AND (status = 'running' OR job_open)"),
        ),
        Index(
            "tasks_key_waiting",
            "provider", "actor", "concurrency_key", "priority", "available_at", "task_id",
            postgresql_where=text(f"concurrency_key IS NOT NULL AND status IN {words(WAITING)} AND held = '{{}}'"),
        ),
        Index(
            "tasks_parked",
            "provider", "actor", "concurrency_key", "priority", "due_at", "task_id",
            postgresql_where=text("concurrency_key IS NOT NULL AND held = '{key}'"),
        ),
        # A task without an id of its client's has no entry here.
        Index("tasks_request", "request_id", postgresql_where=text("request_id IS NOT NULL")),
        # Workflows' tasks by their keys, and those that somebody is asked about; of the others none is in these.
        Index(
            "tasks_workflow_key",
            "workflow_id", "workflow_key",
            unique=True,
            postgresql_where=text("workflow_key IS NOT NULL"),
        ),
        Index(
            "tasks_asked",
            "user_id", "task_id",
            postgresql_where=text("status = 'blocked' AND asked_at IS NOT NULL"),
        ),
        Index(
            "tasks_ask_expiring",
            "ask_expires_at",
            postgresql_where=text("status = 'blocked' AND asked_at IS NOT NULL AND ask_expires_at IS NOT NULL"),
        ),
        # Lists: what lives and what has ended is found by each filter, newest first.
        living("tasks_live", "task_id"),
        living("tasks_live_user", "user_id", "task_id"),
        living("tasks_live_retry", "task_id", only="lane = 'retry'"),
        living("tasks_live_error", "task_id", only="error IS NOT NULL"),
        living("tasks_live_project", "project_id", "task_id", only="project_id IS NOT NULL"),
        living("tasks_live_workflow", "workflow_id", "task_id", only="workflow_id IS NOT NULL"),
        living("tasks_live_workflow_run", "workflow_run_id", "task_id", only="workflow_run_id IS NOT NULL"),
        living("tasks_live_interaction", "interaction_id", "task_id", only="interaction_id IS NOT NULL"),
        living("tasks_live_parent", "parent_task_id", "task_id", only="parent_task_id IS NOT NULL"),
        finished("tasks_finished", "task_id"),
        Index("tasks_dead", "task_id", postgresql_where=text("status = 'dead'")),
        Index("tasks_cancelled", "task_id", postgresql_where=text("status = 'cancelled'")),
        finished("tasks_finished_actor", "status", "actor", "task_id"),
        finished("tasks_finished_provider", "status", "provider", "task_id"),
        finished("tasks_finished_user", "status", "user_id", "task_id"),
        finished("tasks_finished_retry", "status", "task_id", only="lane = 'retry'"),
        finished("tasks_finished_at", "completed_at"),
        finished("tasks_finished_error", "status", text("(error ->> 'type')"), "task_id", only="error IS NOT NULL"),
        finished("tasks_finished_project", "status", "project_id", "task_id", only="project_id IS NOT NULL"),
        finished("tasks_finished_workflow", "status", "workflow_id", "task_id", only="workflow_id IS NOT NULL"),
        finished(
            "tasks_finished_workflow_run", "status", "workflow_run_id", "task_id", only="workflow_run_id IS NOT NULL"
        ),
        finished(
            "tasks_finished_interaction", "status", "interaction_id", "task_id", only="interaction_id IS NOT NULL"
        ),
        finished("tasks_finished_parent", "status", "parent_task_id", "task_id", only="parent_task_id IS NOT NULL"),
        finished("tasks_finished_type", "status", "task_type", "task_id", only="task_type IS NOT NULL"),
        finished(
            "tasks_finished_agent", "status", text("(payload ->> 'subagent_type')"), "task_id", only="actor = 'agent'"
        ),
        finished(
            "tasks_finished_text", text(f"({SEARCHED_TEXT}) gin_trgm_ops"), only=HAS_TEXT, postgresql_using="gin",
            postgresql_with={"gin_pending_list_limit": PENDING_KILOBYTES},
        ),
        Index(
            "tasks_dead_errors", "error_fingerprint", "task_id", postgresql_include=["completed_at"],
            postgresql_where=text("status = 'dead'"),
        ),
        {"postgresql_with": STORAGE},
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
    error_fingerprint: str | None = Field(
        default=None, sa_column=Column(Text, Computed(ERROR_FINGERPRINT, persisted=True))
    )
    job_open: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    traceparent: str | None = None
    suspicion: int = counter()
    retry_delays: dict[str, Any] | None = document()
    concerns: int = counter()
    """Whom its moves are told, as bits: see `shared/concerns.py`."""
    life: int = Field(default=1, sa_column_kwargs={"server_default": text("1")})
    """Its first, or one more for each time it was revived."""
    held: list[str] = Field(
        default_factory=list, sa_column=Column(ARRAY(Text), nullable=False, server_default=text("'{}'"))
    )
    """For which reasons it stands still. While there is one, `available_at` is infinity, and its time is `due_at`."""
    held_at: datetime | None = moment()
    due_at: datetime | None = moment()
    concurrency_key: str | None = None
    usage: dict[str, Any] | None = document()
    """What its attempts have cost together, as far as somebody said so."""
    turn_at: datetime | None = moment()
    """Of one that must run alone: since when a slot is left to it."""
    request_id: str | None = None
    """What the client called the request that submitted it. One that we have made up is the task's own id."""
    workflow_key: str | None = None
    """What it is called in its workflow; one for each element is called `pages[3]`."""
    approval: dict[str, Any] | None = document()
    """What a person is asked before it may start, and what that person has decided."""
    asked_at: datetime | None = moment()
    """While it is blocked: since when only a person's word is missing."""
    ask_expires_at: datetime | None = moment()
    webhook_id: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    """The endpoint that its submitter wants told of its end, whatever it subscribes to."""
    schedule_id: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    """The schedule that started it."""
    claim_xid: int = Field(sa_column=Column(Xid8, nullable=False, server_default=text("'0'")))
    """Of the last claim: by it what runs is counted without what has ended."""
    group_id: UUID | None = Field(default=None, sa_column=Column(PG_UUID(as_uuid=True)))
    """Its group, which can be closed or limit failures (`task_groups`)."""


SEARCHED_TEXT_STATISTICS = f"CREATE STATISTICS tasks_searched_text ON ({SEARCHED_TEXT}) FROM tasks"
"""How common a word is decides whether its tasks are looked up, or met soon enough on the way through the newest."""

event.listen(Task.__table__, "after_create", DDL(SEARCHED_TEXT_STATISTICS))  # type: ignore[attr-defined, no-untyped-call]


class TaskEvent(SQLModel, table=True):
    """One row of a task's history; `seq` is gap-free per task, in the order of commit."""

    __tablename__ = "task_events"
    __table_args__ = (
        CheckConstraint("seq >= 1", name="seq"),
        Index("task_events_in_order_of_commit", "xid", "task_id", "seq"),
    )

    task_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    seq: int = Field(primary_key=True)
    type: str
    at: datetime = moment(optional=False)
    attempt: int
    data: dict[str, Any] = document(optional=False)
    xid: int = Field(sa_column=Column(Xid8, nullable=False, server_default=text("pg_current_xact_id()")))


class TaskTag(SQLModel, table=True):
    """A tag of a task, written with it and never changed: what an index over the tags themselves cannot do is to bring
    the newest of a tag first, however many there are."""

    __tablename__ = "task_tags"

    tag: str = Field(primary_key=True)
    task_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))


class TaskDependency(SQLModel, table=True):
    """An edge: the child waits for the parent, to complete or to end in any way."""

    __tablename__ = "task_dependencies"
    __table_args__ = (
        CheckConstraint("parent_id <> child_id", name="no_loop"),
        CheckConstraint("met_on IN ('completed', 'ended')", name="met_on"),
        Index("task_dependencies_child", "child_id"),
    )

    parent_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    child_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), primary_key=True))
    met_on: str = Field(default="completed", sa_column_kwargs={"server_default": "completed"})
    by_barrier: bool = Field(default=False, sa_column_kwargs={"server_default": text("false")})
    """The parent is a barrier, not a task."""


class Unsettled(SQLModel, table=True):
    """A parent that has ended, or was revived, and has more dependents than its own transaction could tell: the janitor
    goes on after the last one told. Appended, never looked up by its parent, and gone when all have been told."""

    __tablename__ = "unsettled"

    unsettled_id: int = number()
    parent_id: UUID = Field(sa_column=Column(PG_UUID(as_uuid=True), nullable=False))
    revived: bool = Field(sa_column_kwargs={"server_default": text("false")})
    settled_to: UUID = Field(
        sa_column=Column(
            PG_UUID(as_uuid=True), nullable=False, server_default=text("'00000000-0000-0000-0000-000000000000'")
        )
    )
    since: datetime = moment(optional=False)
