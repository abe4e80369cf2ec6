"""The shapes that come in, checked field by field, and the shape of a task as it goes out."""

from datetime import datetime
from typing import Annotated, Any

from pydantic import ConfigDict, Field

from windlass.services.api.access.auth import Caller
from windlass.services.api.access.reasons import Reason
from windlass.services.api.media.links import MediaLinks
from windlass.services.api.tasks.progress import present
from windlass.shared.actors.new_task import NewTask, UserId
from windlass.shared.forms import Form
from windlass.shared.store.reading.listing import ListedTask
from windlass.shared.store.rows import TaskEventRow, TaskRow
from windlass.shared.store.tasks import TASK_FIELDS

__all__ = ["NewTask", "Sweep", "UserId"]

OUR_DETAILS = {"retries_exhausted", "retry_after", "expires_before_retry"}
OUR_DETAILS_OF = {"DependencyFailed": {"task_id"}, "Expired": {"last_error"}, "InvalidInput": {"pointer"}}
"""What Windlass itself notes beside an error; everything else in `details` came from a provider or a worker."""


class Sweep(Form):
    """Which leases the stale sweep takes for lost."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    max_age_seconds: Annotated[
        float, Field(ge=0, le=366 * 86400, strict=True, description="Run out at least so long ago.")
    ] = 0
    reason: Reason | None = None


def task_document(row: TaskRow, caller: Caller, links: MediaLinks) -> dict[str, Any]:
    """A task as every endpoint returns it."""
    document = {name: row[name] for name in TASK_FIELDS}
    document["available_at"] = row.due_at or row.available_at
    document["result"] = links.renewed(row.actor, row.result)
    if row.approval is not None:
        asked_at = row.asked_at if row.status == "blocked" else None
        document["approval"] = {**row.approval, "since": asked_at, "expires_at": asked_at and row.ask_expires_at}
    document["error"] = error_for(caller, row.error)
    document["provider_job_id"] = provider_job_for(caller, row.provider_job_id)
    document["progress"] = present(
        status=row.status,
        attempt=row.attempt,
        said=row.progress,
        error=row.error,
        at=row.updated_at,
        elapsed_ms=_elapsed_ms(row.started_at, row.completed_at or row.updated_at),
    )
    return document


def _elapsed_ms(started_at: datetime | None, until: datetime) -> int:
    return 0 if started_at is None else max(0, round((until - started_at).total_seconds() * 1000))


def list_document(row: ListedTask, caller: Caller, links: MediaLinks, *, full: bool) -> dict[str, Any]:
    """A task in a list: without its payload, result and stack trace unless they are asked for."""
    document = {**task_document(row, caller, links), "title": row.title}
    if not full:
        del document["payload"], document["result"]
        if document["error"] is not None:
            document["error"] = {**document["error"], "stack_trace": None}
    return document


def event_document(row: TaskEventRow, caller: Caller) -> dict[str, Any]:
    data = row.data
    if "error" in data:
        data = {**data, "error": error_for(caller, data["error"])}
    if "provider_job_id" in data:
        data = {**data, "provider_job_id": provider_job_for(caller, data["provider_job_id"])}
    return {"seq": row.seq, "type": row.type, "at": row.at, "attempt": row.attempt, "data": data}


def error_for(caller: Caller, error: dict[str, Any] | None) -> dict[str, Any] | None:
    """Stack traces are for admins, and what a provider said beside the message is not for users."""
    if error is None or caller.is_admin:
        return error
    shown = {**error, "stack_trace": None}
    if not caller.sees_everything:
        ours = OUR_DETAILS | OUR_DETAILS_OF.get(error["type"], set())
        shown["details"] = {k: v for k, v in (error["details"] or {}).items() if k in ours} or None
    return shown


def provider_job_for(caller: Caller, provider_job_id: str | None) -> str | None:
    """The provider's own name for the work is between it and the operator."""
    return provider_job_id if caller.sees_everything else None
