"""The shapes that come in, checked field by field, and the shape of a task as it goes out."""

from datetime import UTC, datetime
from typing import Annotated, Any
from uuid import UUID

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, field_validator, model_validator

from services.api.auth import Caller
from shared.db import Row
from shared.progress import present

LAST_YEAR = 3000

Name = Annotated[str, Field(min_length=1, max_length=200)]

TASK_FIELDS = (
    "task_id", "actor", "task_type", "provider", "queue", "lane", "status", "priority", "payload", "result", "error",
    "progress", "attempt", "retry_count", "max_retries", "interrupt_count", "available_at", "expires_at",
    "timeout_seconds", "created_at", "updated_at", "started_at", "completed_at", "worker_id", "heartbeat_at",
    "lease_expires_at", "cancel_requested", "user_id", "tags", "project_id", "workflow_id", "workflow_run_id",
    "interaction_id", "parent_task_id", "depends_on", "dedupe_key", "provider_job_id", "exit_code",
)  # fmt: skip


class NewTask(BaseModel):
    """`POST /tasks`."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    actor: Name
    payload: dict[str, Any] = Field(default_factory=dict)
    provider: Name | None = None
    task_type: Name | None = None
    priority: Annotated[int, Field(ge=0, le=9)] = 2
    max_retries: Annotated[int, Field(ge=0, le=100)] = 3
    timeout_seconds: Annotated[float, Field(gt=0, le=7 * 86400)] | None = None
    max_age_seconds: Annotated[float, Field(gt=0, le=100 * 366 * 86400)] | None = None
    run_at: AwareDatetime | None = None
    delay_seconds: Annotated[float, Field(ge=0, le=366 * 86400)] | None = None
    tags: Annotated[list[Name], Field(max_length=50)] = Field(default_factory=list)
    project_id: Name | None = None
    workflow_id: Name | None = None
    parent_task_id: UUID | None = None
    depends_on: Annotated[list[UUID], Field(max_length=1000)] = Field(default_factory=list)
    user_id: Name | None = None

    @field_validator("run_at")
    @classmethod
    def _a_time_that_can_be_kept(cls, run_at: datetime | None) -> datetime | None:
        """In UTC: Postgres does not read every zone that ISO 8601 can write."""
        try:
            in_utc = run_at and run_at.astimezone(UTC)
        except OverflowError:
            in_utc = datetime.max.replace(tzinfo=UTC)
        if in_utc and in_utc.year >= LAST_YEAR:
            raise ValueError(f"must be before the year {LAST_YEAR}")
        return in_utc

    @model_validator(mode="after")
    def _one_time_only(self) -> "NewTask":
        if self.run_at is not None and self.delay_seconds is not None:
            raise ValueError("give run_at or delay_seconds, not both")
        return self


def task_document(row: Row, caller: Caller) -> dict[str, Any]:
    """A task as every endpoint returns it."""
    document = {name: row[name] for name in TASK_FIELDS}
    document["error"] = error_for(caller, row["error"])
    document["progress"] = present(
        status=row["status"],
        attempt=row["attempt"],
        said=row["progress"],
        error=row["error"],
        at=row["updated_at"],
        elapsed_ms=_elapsed_ms(row["started_at"], row["completed_at"] or row["updated_at"]),
    )
    return document


def _elapsed_ms(started_at: datetime | None, until: datetime) -> int:
    return 0 if started_at is None else max(0, round((until - started_at).total_seconds() * 1000))


def list_document(row: Row, caller: Caller, *, full: bool) -> dict[str, Any]:
    """A task in a list: without its payload, result and stack trace unless they are asked for."""
    document = task_document(row, caller)
    if not full:
        del document["payload"], document["result"]
        if document["error"] is not None:
            document["error"] = {**document["error"], "stack_trace": None}
    return document


def event_document(row: Row, caller: Caller) -> dict[str, Any]:
    data = row["data"]
    if "error" in data:
        data = {**data, "error": error_for(caller, data["error"])}
    return {"seq": row["seq"], "type": row["type"], "at": row["at"], "attempt": row["attempt"], "data": data}


def error_for(caller: Caller, error: dict[str, Any] | None) -> dict[str, Any] | None:
    """Stack traces are for admins."""
    return error if error is None or caller.is_admin else {**error, "stack_trace": None}
