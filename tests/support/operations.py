"""Who may do what: one entry for every operation of the API. One that is missing here fails the tests of the roles."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

API = "/api/v1"
NO_PROJECT = "01890000-0000-7000-8000-000000000000"


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
        return self.about in {
            "task",
            "bulk",
            "content",
            "project",
            "schedule",
            "workflow",
            "agent-event",
            "webhook",
            "delivery",
        }


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

HOURLY = {"cron": "0 * * * *", "target": {"task": LATER}}

OPERATIONS: Mapping[str, Operation] = {
    "GET /health": Operation(May.ANYBODY),
    "GET /health/live": Operation(May.ANYBODY),
    "GET /health/ready": Operation(May.ANYBODY),
    "GET /metrics": Operation(May.OVERSEE),
    # webhooks
    f"POST {API}/webhooks": Operation(
        May.WRITE, body={"url": "https://example.org/hook", "events": []}, fine=_statuses(201, 409)
    ),
    f"GET {API}/webhooks": Operation(May.READ),
    f"GET {API}/webhooks/{{}}": Operation(May.READ, "webhook"),
    f"PATCH {API}/webhooks/{{}}": Operation(May.WRITE, "webhook", body={"description": "ours"}),
    f"DELETE {API}/webhooks/{{}}": Operation(May.WRITE, "webhook", fine=_statuses(204)),
    f"POST {API}/webhooks/{{}}/test": Operation(May.WRITE, "webhook", fine=_statuses(202)),
    f"POST {API}/webhooks/{{}}/rotate": Operation(May.WRITE, "webhook"),
    f"POST {API}/webhooks/{{}}/disable": Operation(May.WRITE, "webhook"),
    f"POST {API}/webhooks/{{}}/enable": Operation(May.WRITE, "webhook"),
    f"GET {API}/webhooks/{{}}/deliveries": Operation(May.READ, "webhook"),
    f"GET {API}/deliveries/{{}}": Operation(May.READ, "delivery"),
    f"POST {API}/deliveries/{{}}/redeliver": Operation(May.WRITE, "delivery", fine=_statuses(202)),
    # tasks
    f"POST {API}/tasks": Operation(May.WRITE, body=LATER, fine=_statuses(201)),
    f"POST {API}/tasks/batch": Operation(May.WRITE, body={"tasks": [LATER]}, fine=_statuses(201)),
    # Their payloads are no matter here: 422 comes after the question who asks.
    f"POST {API}/tasks/probe": Operation(May.WRITE, body={}, fine=_statuses(201, 422)),
    f"POST {API}/tasks/embed": Operation(May.WRITE, body={}, fine=_statuses(403)),
    f"POST {API}/tasks/summarize": Operation(May.WRITE, body={}, fine=_statuses(201, 422)),
    f"POST {API}/tasks/media": Operation(May.WRITE, body={}, fine=_statuses(201, 422)),
    f"POST {API}/tasks/agent": Operation(May.WRITE, body={}, fine=_statuses(201, 422)),
    f"POST {API}/tasks/webhook": Operation(May.WRITE, body={}, fine=_statuses(201, 422)),
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
    f"POST {API}/tasks/{{}}/approve": Operation(May.WRITE, "task", fine=_statuses(200, 409)),
    f"POST {API}/tasks/{{}}/reject": Operation(May.WRITE, "task", fine=_statuses(200, 409)),
    f"GET {API}/approvals": Operation(May.READ),
    # workflows
    f"POST {API}/workflows": Operation(
        May.WRITE, body={"name": "report", "tasks": [{"key": "a", **LATER}]}, fine=_statuses(201)
    ),
    f"GET {API}/workflows": Operation(May.READ),
    f"GET {API}/workflows/{{}}": Operation(May.READ, "workflow"),
    f"GET {API}/workflows/{{}}/stream": Operation(May.READ, "workflow"),
    f"POST {API}/workflows/{{}}/resume": Operation(May.WRITE, "workflow", fine=_statuses(202, 409)),
    f"POST {API}/workflows/{{}}/cancel": Operation(May.WRITE, "workflow", fine=_statuses(200, 202, 409)),
    # many at once
    f"POST {API}/tasks/bulk": Operation(
        May.WRITE, body={"action": "cancel", "filter": NO_SUCH}, fine=_statuses(200, 202)
    ),
    f"GET {API}/bulk/{{}}": Operation(May.READ, "bulk"),
    f"GET {API}/queues/status": Operation(May.READ),
    f"GET {API}/queues/dlq": Operation(May.READ),
    f"POST {API}/queues/dlq/revive": Operation(May.WRITE, body={"filter": NO_SUCH}, fine=_statuses(200, 202)),
    # schedules
    f"POST {API}/schedules": Operation(May.WRITE, body={**HOURLY, "name": "new"}, fine=_statuses(201, 409)),
    f"GET {API}/schedules": Operation(May.READ),
    f"POST {API}/schedules/preview": Operation(May.READ, body={"cron": "0 * * * *"}),
    f"GET {API}/schedules/{{}}": Operation(May.READ, "schedule"),
    f"GET {API}/schedules/{{}}/runs": Operation(May.READ, "schedule"),
    f"PATCH {API}/schedules/{{}}": Operation(May.WRITE, "schedule", body={"overlap": "skip"}),
    f"DELETE {API}/schedules/{{}}": Operation(May.WRITE, "schedule", fine=_statuses(204)),
    f"POST {API}/schedules/{{}}/pause": Operation(May.WRITE, "schedule"),
    f"POST {API}/schedules/{{}}/resume": Operation(May.WRITE, "schedule"),
    f"POST {API}/schedules/{{}}/trigger": Operation(May.WRITE, "schedule", fine=_statuses(202)),
    f"POST {API}/schedules/{{}}/backfill": Operation(
        May.WRITE,
        "schedule",
        body={"from": "2026-01-01T00:00:00Z", "to": "2026-01-01T00:00:01Z"},
        fine=_statuses(202),
    ),
    f"PUT {API}/schedules/{{}}": Operation(
        May.WRITE, "schedule", body={**HOURLY, "name": "changed"}, fine=_statuses(200, 409)
    ),
    # projects; where a path names an item, it is one that nobody has
    f"POST {API}/projects": Operation(May.WRITE, body={"name": "site"}, fine=_statuses(201)),
    f"GET {API}/projects": Operation(May.READ),
    f"POST {API}/projects/batch": Operation(
        May.WRITE, body={"action": "stop", "project_ids": [NO_PROJECT]}, fine=_statuses(200)
    ),
    f"GET {API}/projects/{{}}": Operation(May.READ, "project"),
    f"PATCH {API}/projects/{{}}": Operation(May.WRITE, "project", body={"on_failure": "stop"}),
    f"DELETE {API}/projects/{{}}": Operation(May.WRITE, "project"),
    f"GET {API}/projects/{{}}/items": Operation(May.READ, "project"),
    f"POST {API}/projects/{{}}/items": Operation(May.WRITE, "project", body={"actor": "probe"}, fine=_statuses(201)),
    f"GET {API}/projects/{{}}/items/{{}}": Operation(May.READ, "project", fine=_statuses(404)),
    f"PATCH {API}/projects/{{}}/items/{{}}": Operation(May.WRITE, "project", body={}, fine=_statuses(404)),
    f"DELETE {API}/projects/{{}}/items/{{}}": Operation(May.WRITE, "project", fine=_statuses(404)),
    f"POST {API}/projects/{{}}/items/{{}}/skip": Operation(May.WRITE, "project", fine=_statuses(404)),
    f"POST {API}/projects/{{}}/items/{{}}/requeue": Operation(May.WRITE, "project", fine=_statuses(404)),
    f"POST {API}/projects/{{}}/run": Operation(May.WRITE, "project", fine=_statuses(202, 409)),
    f"POST {API}/projects/{{}}/queue/stop": Operation(May.WRITE, "project"),
    f"POST {API}/projects/{{}}/queue/force-stop": Operation(May.WRITE, "project"),
    f"GET {API}/projects/{{}}/queue/status": Operation(May.READ, "project"),
    f"GET {API}/projects/{{}}/queue/stream": Operation(May.READ, "project"),
    f"GET {API}/projects/{{}}/events": Operation(May.READ, "project"),
    f"GET {API}/projects/{{}}/runs": Operation(May.READ, "project"),
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
    f"DELETE {API}/actors/{{}}": Operation(May.OPERATE, "actor", fine=_statuses(409)),
    f"GET {API}/overview": Operation(May.READ),
    f"GET {API}/providers": Operation(May.READ),
    f"PATCH {API}/providers": Operation(May.OPERATE, body={"paused": False}),
    f"GET {API}/providers/{{}}": Operation(May.READ, "provider"),
    f"GET {API}/providers/{{}}/events": Operation(May.OVERSEE, "provider"),
    f"PATCH {API}/providers/{{}}": Operation(May.OPERATE, "provider", body={}),
    f"GET {API}/workers": Operation(May.OVERSEE),
    f"POST {API}/workers/{{}}/drain": Operation(May.OPERATE, "worker", fine=_statuses(202)),
    f"POST {API}/tasks/{{}}/kill-worker": Operation(May.OPERATE, "task", fine=_statuses(409)),
    f"GET {API}/stats": Operation(May.READ),
    # memory
    f"GET {API}/agent-events": Operation(May.READ),
    f"GET {API}/agent-events/{{}}": Operation(May.READ, "agent-event"),
    f"DELETE {API}/agent-events/{{}}": Operation(May.WRITE, "agent-event", fine=_statuses(204)),
    f"GET {API}/memory/search": Operation(May.READ, fine=_statuses(422)),
    f"POST {API}/memory/search": Operation(May.READ, body={"q": "a-foreign-prompt"}),
    f"GET {API}/embedding-models": Operation(May.READ),
    f"POST {API}/embedding-models": Operation(
        May.OPERATE, body={"name": "wide", "provider": "hash", "dimensions": 8}, fine=_statuses(201, 409)
    ),
    f"POST {API}/embedding-models/{{}}/activate": Operation(May.OPERATE, "embedding-model"),
    f"DELETE {API}/embedding-models/{{}}": Operation(May.OPERATE, "embedding-model", fine=_statuses(204, 409)),
    f"GET {API}/embedding-jobs": Operation(May.OVERSEE),
    f"POST {API}/embedding-jobs/{{}}/retry": Operation(May.OPERATE, "embedding-job", fine=_statuses(202)),
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
