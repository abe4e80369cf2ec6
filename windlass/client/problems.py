"""Which error an answer stands for, looked up by its `code`, else by its status."""

from typing import Any, Final

import msgspec

from windlass.client.errors import (
    AgentEventNotFound,
    AlreadyDecided,
    ApiError,
    BacklogEmpty,
    BadRequest,
    BulkNotFound,
    Conflict,
    DeliveryNotFound,
    DeliveryUnderWay,
    Duplicate,
    EmptyFilter,
    FieldError,
    Forbidden,
    IdempotencyKeyInFlight,
    IdempotencyKeyReused,
    Invalid,
    InvalidEventId,
    InvalidPayload,
    InvalidReference,
    InvalidSchedule,
    InvalidTask,
    InvalidWebhook,
    InvalidWorkflow,
    ItemNotFound,
    KeyInUse,
    KeyNotFound,
    MalformedJson,
    MediaNotFound,
    ModelActive,
    ModelExists,
    NameTaken,
    NotCancellable,
    NotEscalated,
    NotFound,
    NotRevivable,
    NotWaitingForApproval,
    ProjectNotFound,
    ProviderNotFound,
    QueueAlreadyRunning,
    ScheduleNotFound,
    TaskNotFound,
    TooLarge,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnknownActor,
    UnknownAgent,
    UnknownDependency,
    UnknownProvider,
    UrlTaken,
    WebhookDeleted,
    WebhookNotFound,
    WorkflowCancelled,
    WorkflowNotFound,
)

BY_CODE: Final[dict[str, type[ApiError]]] = {
    "malformed-json": MalformedJson,
    "invalid-event-id": InvalidEventId,
    "task-not-found": TaskNotFound,
    "bulk-not-found": BulkNotFound,
    "provider-not-found": ProviderNotFound,
    "key-not-found": KeyNotFound,
    "media-not-found": MediaNotFound,
    "project-not-found": ProjectNotFound,
    "item-not-found": ItemNotFound,
    "workflow-not-found": WorkflowNotFound,
    "schedule-not-found": ScheduleNotFound,
    "name-taken": NameTaken,
    "invalid-schedule": InvalidSchedule,
    "webhook-not-found": WebhookNotFound,
    "delivery-not-found": DeliveryNotFound,
    "url-taken": UrlTaken,
    "webhook-deleted": WebhookDeleted,
    "delivery-under-way": DeliveryUnderWay,
    "invalid-webhook": InvalidWebhook,
    "agent-event-not-found": AgentEventNotFound,
    "model-exists": ModelExists,
    "model-active": ModelActive,
    "workflow-cancelled": WorkflowCancelled,
    "not-escalated": NotEscalated,
    "already-decided": AlreadyDecided,
    "not-waiting-for-approval": NotWaitingForApproval,
    "invalid-workflow": InvalidWorkflow,
    "invalid-reference": InvalidReference,
    "queue-already-running": QueueAlreadyRunning,
    "backlog-empty": BacklogEmpty,
    "not-cancellable": NotCancellable,
    "not-revivable": NotRevivable,
    "duplicate": Duplicate,
    "idempotency-key-in-flight": IdempotencyKeyInFlight,
    "key-in-use": KeyInUse,
    "body-too-large": TooLarge,
    "payload-too-large": TooLarge,
    "idempotency-key-reused": IdempotencyKeyReused,
    "empty-filter": EmptyFilter,
    "invalid-task": InvalidTask,
    "invalid-payload": InvalidPayload,
    "unknown-actor": UnknownActor,
    "unknown-agent": UnknownAgent,
    "unknown-provider": UnknownProvider,
    "unknown-dependency": UnknownDependency,
}
BY_STATUS: Final[dict[int, type[ApiError]]] = {
    400: BadRequest,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    413: TooLarge,
    422: Invalid,
    429: TooManyRequests,
    502: Unavailable,
    503: Unavailable,
    504: Unavailable,
}


def api_error(status: int, body: bytes, retry_after: str | None = None) -> ApiError:
    """The error that an answer stands for, whoever wrote it: a proxy's page has no code and is told by its status."""
    try:
        problem: Any = msgspec.json.decode(body)
    except msgspec.DecodeError:
        problem = None
    if not isinstance(problem, dict):
        problem = {}
    code = problem.get("code")
    code = code if isinstance(code, str) else f"http-{status}"
    detail = str(problem.get("detail") or f"the answer was HTTP {status}")
    fields = problem.get("errors")
    errors = tuple(
        FieldError(str(each.get("pointer", "")), str(each.get("detail", "")))
        for each in (fields if isinstance(fields, list) else ())
        if isinstance(each, dict)
    )
    kind = BY_CODE.get(code) or BY_STATUS.get(status, ApiError)
    return kind(status, code, detail, errors, problem.get("request_id"), _seconds(retry_after))


def _seconds(retry_after: str | None) -> float | None:
    """A date is allowed in the header, too; Windlass sends seconds."""
    try:
        seconds = float(retry_after or "")
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
