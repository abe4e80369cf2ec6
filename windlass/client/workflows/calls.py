"""Every call about workflows and approvals: its path, what it takes and what it answers."""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import uuid4

from windlass.client.call import Call
from windlass.client.calls import API, STILL_IN_FLIGHT, named, without_none
from windlass.client.options import TaskId
from windlass.client.task import Listing, Task
from windlass.client.workflows.documents import Asked, Retry, Workflow
from windlass.client.workflows.options import WorkflowFilter, WorkflowHead, WorkflowId

WORKFLOWS: Final = f"{API}/workflows"


def submit(name: str, tasks: Sequence[Mapping[str, Any]], head: WorkflowHead) -> Call[Workflow]:
    said = without_none({"failure_threshold": head.get("failure_threshold"), "tags": head.get("tags")})
    body = {"name": name, **said, "tasks": [without_none(task) for task in tasks]}
    return submit_document(body, head.get("idempotency_key"))


def submit_document(document: Any, idempotency_key: str | None = None) -> Call[Workflow]:
    """Always with an Idempotency-Key, so that it can be repeated until it is known to be stored."""
    headers = {"Idempotency-Key": idempotency_key or uuid4().hex}
    return Call("POST", WORKFLOWS, Workflow, body=document, headers=headers, repeated_on=STILL_IN_FLIGHT)


def list_workflows(filters: WorkflowFilter, page_size: int | None = None) -> Call[Listing[Workflow]]:
    return Call("GET", WORKFLOWS, Listing[Workflow], params={**filters, "limit": page_size})


def get(workflow_id: WorkflowId, wait: float | None = None) -> Call[Workflow]:
    return Call("GET", _workflow(workflow_id), Workflow, params={"wait": wait}, held_back_seconds=wait or 0)


def resume(workflow_id: WorkflowId, retry: Retry = "failed", reason: str | None = None) -> Call[Workflow]:
    """Not repeated: a second one could resume it from its next escalation."""
    body = {"retry": retry, **without_none({"reason": reason})}
    return Call("POST", f"{_workflow(workflow_id)}/resume", Workflow, body=body, repeatable=False)


def cancel(workflow_id: WorkflowId, reason: str | None = None) -> Call[Workflow]:
    return Call("POST", f"{_workflow(workflow_id)}/cancel", Workflow, body=without_none({"reason": reason}))


def approvals(page_size: int | None = None) -> Call[Listing[Asked]]:
    return Call("GET", f"{API}/approvals", Listing[Asked], params={"limit": page_size})


def approve(task_id: TaskId, comment: str | None = None) -> Call[Task]:
    return _decide(task_id, "approve", comment)


def reject(task_id: TaskId, comment: str | None = None) -> Call[Task]:
    return _decide(task_id, "reject", comment)


def stream_path(workflow_id: WorkflowId) -> str:
    return f"{_workflow(workflow_id)}/stream"


def _decide(task_id: TaskId, verb: str, comment: str | None) -> Call[Task]:
    """Not repeated: a second one is told that it is decided, and nobody could say by whom."""
    path, body = f"{API}/tasks/{named(str(task_id))}/{verb}", without_none({"comment": comment})
    return Call("POST", path, Task, body=body, repeatable=False)


def _workflow(workflow_id: WorkflowId) -> str:
    return f"{WORKFLOWS}/{named(str(workflow_id))}"
