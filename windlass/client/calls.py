"""Every call of the API: its path, what it takes and what it answers."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count, islice
from typing import Any, Final, Literal
from urllib.parse import quote
from uuid import uuid4

from windlass.client.call import Call
from windlass.client.media import Generation
from windlass.client.operations import (
    ActorDescription,
    AuditEntry,
    Bulk,
    BulkStarted,
    ErrorGroup,
    ForgottenActor,
    Health,
    Key,
    NewKey,
    Provider,
    Queues,
    SessionLink,
    Worker,
)
from windlass.client.options import Filter, NewTask, ProviderChange, Role, SubmitOptions, TaskId
from windlass.client.task import Batch, Event, Listing, StreamToken, Task, Why

API: Final = "/api/v1"
LONGEST_WAIT_SECONDS: Final = 50
MOST_PER_BATCH: Final = 1000
STILL_IN_FLIGHT: Final = frozenset({409})


def submit(
    actor: str, payload: Mapping[str, Any] | None, idempotency_key: str | None, options: SubmitOptions
) -> Call[Task]:
    """Always with an Idempotency-Key, so that it can be repeated until it is known to be stored."""
    body = {"actor": actor, "payload": dict(payload or {}), **without_none(options)}
    headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
    return Call("POST", f"{API}/tasks", Task, body=body, headers=headers, repeated_on=STILL_IN_FLIGHT)


def submit_batch(tasks: Sequence[NewTask], idempotency_key: str | None = None) -> Call[Batch]:
    body = {"tasks": [without_none(task) for task in tasks]}
    headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
    return Call("POST", f"{API}/tasks/batch", Batch, body=body, headers=headers, repeated_on=STILL_IN_FLIGHT)


def submit_batches(tasks: Iterable[NewTask], idempotency_key: str | None = None) -> Iterator[Call[Batch]]:
    """As many as it takes; under one key the same tasks come in the same batches again."""
    waiting = iter(tasks)
    for number in count(1):
        batch = list(islice(waiting, MOST_PER_BATCH))
        if not batch:
            return
        yield submit_batch(batch, idempotency_key and f"{idempotency_key}-{number}")


def get(task_id: TaskId, wait: float | None = None) -> Call[Task]:
    return Call("GET", _task(task_id), Task, params={"wait": wait}, held_back_seconds=wait or 0)


def list_tasks(filters: Filter, page_size: int | None = None, *, full: bool = False) -> Call[Listing[Task]]:
    params = {**filters, "limit": page_size, "full": full or None}
    return Call("GET", f"{API}/tasks", Listing[Task], params=params)


def events(
    task_id: TaskId, after: int = 0, types: Sequence[str] = (), page_size: int | None = None
) -> Call[Listing[Event]]:
    params = {"after": after, "type": list(types) or None, "limit": page_size}
    return Call("GET", f"{_task(task_id)}/events", Listing[Event], params=params, cursor="after")


def workflow_run_media(workflow_run_id: str, page_size: int | None = None) -> Call[Listing[Generation]]:
    path = f"{API}/workflow-runs/{named(workflow_run_id)}/media"
    return Call("GET", path, Listing[Generation], params={"limit": page_size})


def media(content_id: str) -> Call[bytes]:
    return Call("GET", f"{API}/media/{named(content_id)}", bytes, is_raw=True)


def stream_token(task_id: TaskId) -> Call[StreamToken]:
    """Harmless to repeat: nothing is stored for a token."""
    return Call("POST", f"{_task(task_id)}/stream-token", StreamToken)


def why(task_id: TaskId) -> Call[Why]:
    return Call("GET", f"{_task(task_id)}/why", Why)


def cancel(task_id: TaskId) -> Call[Task]:
    return Call("POST", f"{_task(task_id)}/cancel", Task)


def retry(task_id: TaskId) -> Call[Task]:
    """Not repeated: a second one could revive the task from its next death."""
    return Call("POST", f"{_task(task_id)}/retry", Task, repeatable=False)


def bulk(
    action: Literal["retry", "cancel"], chosen: Filter, *, everything: bool = False, dry_run: bool = False
) -> Call[BulkStarted]:
    body = {"action": action, **_chosen(chosen, everything=everything), **without_none({"dry_run": dry_run or None})}
    return Call("POST", f"{API}/tasks/bulk", BulkStarted, body=body, repeatable=dry_run)


def bulk_progress(bulk_id: str) -> Call[Bulk]:
    return Call("GET", f"{API}/bulk/{named(bulk_id)}", Bulk)


def queues() -> Call[Queues]:
    return Call("GET", f"{API}/queues/status", Queues)


def dlq(filters: Filter, page_size: int | None = None) -> Call[Listing[Task]]:
    return Call("GET", f"{API}/queues/dlq", Listing[Task], params={**filters, "limit": page_size})


def dlq_groups(filters: Filter) -> Call[Listing[ErrorGroup]]:
    return Call("GET", f"{API}/queues/dlq", Listing[ErrorGroup], params={**filters, "group_by": "error"})


def revive(chosen: Filter, *, everything: bool = False, canary: int | None = None) -> Call[BulkStarted]:
    body = {**_chosen(chosen, everything=everything), **without_none({"canary": canary})}
    return Call("POST", f"{API}/queues/dlq/revive", BulkStarted, body=body, repeatable=False)


def providers() -> Call[Listing[Provider]]:
    return Call("GET", f"{API}/providers", Listing[Provider])


def provider(name: str) -> Call[Provider]:
    return Call("GET", f"{API}/providers/{named(name)}", Provider)


def set_provider(name: str, change: ProviderChange) -> Call[Provider]:
    return Call("PATCH", f"{API}/providers/{named(name)}", Provider, body=dict(change))


def set_every_provider(*, paused: bool, reason: str | None = None) -> Call[Listing[Provider]]:
    return Call(
        "PATCH", f"{API}/providers", Listing[Provider], body={"paused": paused, **without_none({"reason": reason})}
    )


def drain_worker(worker_id: str, reason: str | None = None) -> Call[Worker]:
    return Call("POST", f"{API}/workers/{named(worker_id)}/drain", Worker, body=without_none({"reason": reason}))


def workers() -> Call[Listing[Worker]]:
    return Call("GET", f"{API}/workers", Listing[Worker])


def actors() -> Call[Listing[ActorDescription]]:
    return Call("GET", f"{API}/actors", Listing[ActorDescription])


def actor(name: str) -> Call[ActorDescription]:
    return Call("GET", f"{API}/actors/{named(name)}", ActorDescription)


def forget_actor(name: str) -> Call[ForgottenActor]:
    """Not repeated: a second one would find nothing."""
    return Call("DELETE", f"{API}/actors/{named(name)}", ForgottenActor, repeatable=False)


def keys() -> Call[Listing[Key]]:
    return Call("GET", f"{API}/keys", Listing[Key])


def create_key(role: Role, user_id: str, name: str | None, expires_in_seconds: float | None) -> Call[NewKey]:
    body = without_none({"role": role, "user_id": user_id, "name": name, "expires_in_seconds": expires_in_seconds})
    return Call("POST", f"{API}/keys", NewKey, body=body, repeatable=False)


def delete_key(key_id: str) -> Call[Key]:
    return Call("DELETE", f"{API}/keys/{named(key_id)}", Key)


def session_link() -> Call[SessionLink]:
    return Call("POST", f"{API}/session-links", SessionLink)


def audit(page_size: int | None = None) -> Call[Listing[AuditEntry]]:
    return Call("GET", f"{API}/audit", Listing[AuditEntry], params={"limit": page_size})


def health() -> Call[Health]:
    return Call("GET", "/health", Health)


MANY_STREAM: Final = f"{API}/stream"


def stream_path(task_id: TaskId) -> str:
    return f"{_task(task_id)}/stream"


def _task(task_id: TaskId) -> str:
    return f"{API}/tasks/{named(str(task_id))}"


def named(name: str) -> str:
    """One part of a path."""
    if not name:
        raise ValueError("an id or a name is missing: it is empty")
    return quote(name, safe="")


def without_none(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _chosen(chosen: Filter, *, everything: bool) -> dict[str, Any]:
    return {"filter": without_none(chosen), **({"all": True} if everything else {})}
