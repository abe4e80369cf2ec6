"""Who may do what: one entry for every operation of the API. One that is missing here fails the tests of the roles."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

API = "/api/v1"


class May(Enum):
    """Who an operation is for."""

    ANYBODY = "works without a key"
    READ = "any key reads; a user its own things alone"
    WRITE = "users and admins write; a user its own things alone"
    OVERSEE = "viewers and admins read; users are refused"
    OPERATE = "admins alone"


@dataclass(frozen=True)
class Operation:
    """`about` is the kind of thing that the path names; `owned` things of others do not exist for a user."""

    may: May
    about: str | None = None
    body: Any = None
    fine: frozenset[int] = frozenset({200})

    @property
    def owned(self) -> bool:
        return self.about in {"task", "bulk", "content"}


def expected(operation: Operation, role: str, whose: str | None) -> frozenset[int]:
    """The answers that are right. `whose` is `own`, `foreign` or `unknown`, or none where the path names nothing."""
    if operation.may is May.ANYBODY:
        return operation.fine
    if role == "nobody":
        return frozenset({401})
    refused = {
        May.READ: set(),
        May.WRITE: {"viewer"},
        May.OVERSEE: {"user"},
        May.OPERATE: {"user", "viewer"},
    }[operation.may]
    if role in refused:
        return frozenset({403})
    if operation.about == "workflow-run":
        return operation.fine  # nobody makes them: one that is unknown, or somebody else's, is empty
    if whose == "unknown" or (whose == "foreign" and role == "user" and operation.owned):
        return frozenset({404})
    return operation.fine


def _statuses(*numbers: int) -> frozenset[int]:
    return frozenset(numbers)


NO_SUCH = {"error_type": "NothingHasThisType"}
LATER = {"actor": "probe", "delay_seconds": 3600}

OPERATIONS: Mapping[str, Operation] = {
    "GET /health": Operation(May.ANYBODY),
    "GET /health/live": Operation(May.ANYBODY),
    "GET /health/ready": Operation(May.ANYBODY),
    "GET /metrics": Operation(May.OVERSEE),
    # tasks
    f"POST {API}/tasks": Operation(May.WRITE, body=LATER, fine=_statuses(201)),
    f"POST {API}/tasks/batch": Operation(May.WRITE, body={"tasks": [LATER]}, fine=_statuses(201)),
    # Their payloads are no matter here: 422 comes after the question who asks.
    f"POST {API}/tasks/probe": Operation(May.WRITE, body={}, fine=_statuses(201, 422)),
    f"POST {API}/tasks/summarize": Operation(May.WRITE, body={}, fine=_statuses(201, 422)),
    f"POST {API}/tasks/media": Operation(May.WRITE, body={}, fine=_statuses(201, 422)),
    f"POST {API}/tasks/agent": Operation(May.WRITE, body={}, fine=_statuses(201, 422)),
    f"GET {API}/tasks": Operation(May.READ),
    f"GET {API}/tasks/{{}}": Operation(May.READ, "task"),
    f"GET {API}/tasks/{{}}/events": Operation(May.READ, "task"),
    f"GET {API}/tasks/{{}}/stream": Operation(May.READ, "task"),
    f"GET {API}/tasks/{{}}/why": Operation(May.READ, "task"),
    # A way to read, not a change: a viewer's browser needs it too.
    f"POST {API}/tasks/{{}}/stream-token": Operation(May.READ, "task", fine=_statuses(200, 201)),
    f"POST {API}/tasks/{{}}/cancel": Operation(May.WRITE, "task", fine=_statuses(200, 202, 409)),
    f"DELETE {API}/tasks/{{}}": Operation(May.WRITE, "task", fine=_statuses(200, 202, 409)),
    f"POST {API}/tasks/{{}}/retry": Operation(May.WRITE, "task", fine=_statuses(200, 409)),
    f"POST {API}/tasks/requeue-orphaned": Operation(May.OPERATE),
    f"GET {API}/stream": Operation(May.READ),
    # many at once
    f"POST {API}/tasks/bulk": Operation(
        May.WRITE, body={"action": "cancel", "filter": NO_SUCH}, fine=_statuses(200, 202)
    ),
    f"GET {API}/bulk/{{}}": Operation(May.READ, "bulk"),
    f"GET {API}/queues/status": Operation(May.READ),
    f"GET {API}/queues/dlq": Operation(May.READ),
    f"POST {API}/queues/dlq/revive": Operation(May.WRITE, body={"filter": NO_SUCH}, fine=_statuses(200, 202)),
    # media
    f"GET {API}/media/{{}}": Operation(May.READ, "content"),
    f"GET {API}/media": Operation(May.READ),
    f"POST {API}/media": Operation(May.WRITE, body=b"\x89PNG\r\n\x1a\n", fine=_statuses(201)),
    f"GET {API}/workflow-runs/{{}}/media": Operation(May.READ, "workflow-run"),
    # Providers call these; nobody's key is the right to.
    f"POST {API}/callbacks/{{}}": Operation(May.ANYBODY, body={}, fine=_statuses(404)),
    f"POST {API}/callbacks/provider/{{}}": Operation(May.ANYBODY, body={}, fine=_statuses(404)),
    # operators
    f"GET {API}/actors": Operation(May.READ),
    f"GET {API}/actors/{{}}": Operation(May.READ, "actor"),
    f"GET {API}/overview": Operation(May.READ),
    f"GET {API}/providers": Operation(May.READ),
    f"PATCH {API}/providers": Operation(May.OPERATE, body={"paused": False}),
    f"GET {API}/providers/{{}}": Operation(May.READ, "provider"),
    f"GET {API}/providers/{{}}/events": Operation(May.OVERSEE, "provider"),
    f"PATCH {API}/providers/{{}}": Operation(May.OPERATE, "provider", body={}),
    f"GET {API}/workers": Operation(May.OVERSEE),
    f"POST {API}/workers/{{}}/drain": Operation(May.OPERATE, "worker", fine=_statuses(202)),
    f"POST {API}/tasks/{{}}/kill-worker": Operation(May.OPERATE, "task", fine=_statuses(409)),
    f"GET {API}/stats": Operation(May.OVERSEE),
    # sessions: anybody may try to sign in, and a link signs in as oneself
    f"POST {API}/session": Operation(May.ANYBODY, body={}, fine=_statuses(422)),
    f"GET {API}/session": Operation(May.READ),
    f"DELETE {API}/session": Operation(May.READ, fine=_statuses(204)),
    f"POST {API}/session-links": Operation(May.READ, fine=_statuses(201)),
    f"GET {API}/keys": Operation(May.OVERSEE),
    f"POST {API}/keys": Operation(May.OPERATE, body={"role": "user", "user_id": "carl"}, fine=_statuses(201)),
    f"DELETE {API}/keys/{{}}": Operation(May.OPERATE, "key"),
    f"GET {API}/audit": Operation(May.OVERSEE),
}
