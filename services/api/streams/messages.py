"""A row of history as a server-sent event: which one it is, and what it carries for whom."""

from typing import Any

import msgspec

from windlass.services.api.access.auth import Caller
from windlass.services.api.media.links import MediaLinks
from windlass.services.api.tasks.progress import present
from windlass.services.api.tasks.schemas import error_for
from windlass.shared.states import State
from windlass.shared.store.reading.events import EventWithState

UNTOLD = {"dispatch", "cancel-requested", "hold", "release", "approve", "reject", "recall"}
"""They change neither state nor progress."""
ENDS = {State.COMPLETED: "complete", State.DEAD: "error", State.CANCELLED: "cancelled"}


def message_of(event: EventWithState, caller: Caller, links: MediaLinks) -> tuple[str, dict[str, Any]] | None:
    """One row of history is at most one event; an end is told as an end only if it made the present state.

    The row holds the event and its task's `actor`, `status`, `last_seq`, `result` and `error`, all seen at one moment.
    """
    data, attempt, kind = event.data, event.attempt, event.type
    if kind in UNTOLD:
        return None
    if kind in {"output", "step"}:
        return kind, {"attempt": attempt, **data}
    if event.seq == event.last_seq and event.status in ENDS:
        return _end_of(event, caller, links)
    body = progress_message(event)
    if "error" in data:
        body["error"] = error_for(caller, data["error"])
    return "progress", body


def progress_message(event: EventWithState) -> dict[str, Any]:
    """What every change of state and of progress says, but for its error."""
    return {"status": event.data["status"], "attempt": event.attempt, "progress": _progress_of(event)}


def _end_of(event: EventWithState, caller: Caller, links: MediaLinks) -> tuple[str, dict[str, Any]]:
    name = ENDS[State(event.status)]
    if name == "complete":
        return name, {"attempt": event.attempt, "result": links.renewed(event.actor, event.result)}
    if name == "error":
        return name, {"attempt": event.attempt, "error": error_for(caller, event.error)}
    return name, {"attempt": event.attempt}


def _progress_of(event: EventWithState) -> dict[str, Any]:
    data = event.data
    return present(
        status=data["status"],
        attempt=event.attempt,
        said=data.get("progress"),
        error=data.get("error"),
        at=event.at,
        elapsed_ms=data.get("elapsed_ms", 0),
    )


def encode(event_id: str, name: str, data: dict[str, Any]) -> bytes:
    return b"id: %s\nevent: %s\ndata: %s\n\n" % (event_id.encode(), name.encode(), msgspec.json.encode(data))
