"""The events of a stream with their data, as the page shows them."""

from typing import Any

PROGRESS = {"elapsed_ms": 1200, "message": "Step 3 of 10", "percent": 30.0, "updated_at": "2030-01-31T12:00:00Z"}
ERROR = {
    "type": "ServiceUnavailable", "kind": "transient", "message": "the provider answered 503", "details": None,
    "stack_trace": None, "attempt": 1,
}  # fmt: skip

STREAM_EVENTS: dict[str, tuple[str, dict[str, Any]]] = {
    "progress": (
        "On every change of state and of progress; `error` where an attempt has failed.",
        {"status": "running", "attempt": 1, "progress": PROGRESS},
    ),
    "output": (
        "What the actor streams, `text` (several events if it is long) or `data`; stale when `attempt` grows.",
        {"attempt": 1, "text": "Once upon a time"},
    ),
    "step": (
        "A step has finished: a later attempt does not do it again. What it came to is not told.",
        {"attempt": 1, "name": "draft", "elapsed_ms": 1200},
    ),
    "complete": ("The end: it has completed. The server closes.", {"attempt": 1, "result": {"echo": "hello"}}),
    "error": ("The end: it is dead. The server closes.", {"attempt": 1, "error": ERROR}),
    "cancelled": ("The end: it was cancelled. The server closes.", {"attempt": 1}),
    "resync": ("Of many tasks with `only=state`: more than 100 events came in a second, load the list again.", {}),
}

ABOUT = """
Each event's `id` is its `seq`; send the last one as `Last-Event-ID`, or as `after`, to go on without a gap. Comments
keep the connection open. Who comes back after the end with nothing left to read gets 204. On `GET /api/v1/stream`
the data adds `task_id` and `seq`, the `id` is an opaque cursor, and there is no end.
"""
