"""The body of a delivery: a pure function of an event. It is stored as it is signed and sent."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec

from windlass.shared.features.webhooks.rules import APPROVAL_REQUESTED, ENDS

LARGEST_BODY = 20_000
LARGEST_RESULT = 4096
"""Bytes of a result that is sent; a larger one is sent as a link."""
LONGEST_MESSAGE = 1000
LONGEST_NAME = 300

NAMES = ("task_id", "project_id", "workflow_id", "status", "life", "seq")
"""What is left of a body that is too long without its result and its tags."""

OF_A_TASK = (
    "task_id", "actor", "task_type", "provider", "attempt", "retry_count", "max_retries", "priority", "user_id", "tags",
    "project_id", "workflow_id", "workflow_run_id", "interaction_id", "workflow_key", "parent_task_id", "dedupe_key",
    "usage",
)  # fmt: skip

Error = Mapping[str, Any] | None


def body(type_: str, at: datetime, data: Mapping[str, Any]) -> str:
    """At most 20 KB. A longer one goes without its result and its tags, which can be requested, or with its names
    only."""
    shorter = {name: value for name, value in data.items() if name not in ("result", "tags")} | {"truncated": True}
    names = {name: data[name] for name in NAMES if name in data and len(msgspec.json.encode(data[name])) < LONGEST_NAME}
    for each in (data, shorter, names | {"truncated": True}):
        encoded = msgspec.json.encode({"type": type_, "timestamp": utc(at), "data": each})
        if len(encoded) <= LARGEST_BODY:
            break
    return encoded.decode()


def task_data(task: Mapping[str, Any], type_: str, *, status: str, life: int, seq: int) -> dict[str, Any]:
    """A task as one of its moves left it, without its payload. `task` has the columns of the task and of the event of
    the move; the task may have moved again since."""
    at = task["event_at"]
    event = task["event_data"] or {}
    data = {name: task[name] for name in OF_A_TASK} | {
        "status": status,
        "life": life,
        "seq": seq,
        "created_at": utc(task["created_at"]),
        "started_at": utc(task["started_at"]),
        "completed_at": utc(at) if status in ENDS else None,
        "error": public_error(event.get("error")),
    }
    if type_ == APPROVAL_REQUESTED:
        data |= {"message": event.get("message"), "expires_at": utc_text(event.get("expires_at"))}
    elif status == "completed":
        small = task["result_text"]
        if small is not None:
            # As the actor returned it: decoding it would round long numbers.
            data["result"] = msgspec.Raw(small.encode())
        else:
            data["result_url"] = f"/api/v1/tasks/{task['task_id']}"
    return data


def event_data(data: Mapping[str, Any]) -> dict[str, Any]:
    """The data of an event without a task, as it was published."""
    return {name: public_error(value) if name == "last_error" else value for name, value in data.items()}


def public_error(error: Error) -> dict[str, Any] | None:
    """Neither where in the code it happened nor the details of a provider's answer."""
    if error is None:
        return None
    message = error.get("message")
    return {
        "type": error.get("type"),
        "kind": error.get("kind"),
        "message": None if message is None else str(message)[:LONGEST_MESSAGE],
        "attempt": error.get("attempt"),
    }


def utc(at: datetime | None) -> str | None:
    return None if at is None else at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def utc_text(at: str | None) -> str | None:
    """A time that was stored in a JSON document."""
    return None if at is None else utc(datetime.fromisoformat(at))
