"""How far a task is, in words: what the actor said, or what its state says where the actor is silent."""

from datetime import datetime
from typing import Any


def present(
    *,
    status: str,
    attempt: int,
    said: dict[str, Any] | None,
    error: dict[str, Any] | None,
    at: datetime,
    elapsed_ms: int,
) -> dict[str, Any]:
    """`{elapsed_ms, message, percent, updated_at}` for any state."""
    if status == "running" and said is not None:
        return said
    percent = 100.0 if status == "completed" else (said or {}).get("percent")
    message = message_of(status, attempt, error)
    return {"elapsed_ms": elapsed_ms, "message": message, "percent": percent, "updated_at": at}


def message_of(status: str, attempt: int, error: dict[str, Any] | None) -> str:
    if status == "dead":
        return f"Failed: {(error or {}).get('message', 'unknown error')}"
    if status == "retrying":
        return f"Retrying (attempt {attempt + 1})"
    return {
        "blocked": "Waiting for dependencies",
        "queued": "Queued",
        "running": "Processing",
        "completed": "Completed",
        "cancelled": "Cancelled",
    }[status]
