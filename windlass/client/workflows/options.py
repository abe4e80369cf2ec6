"""What can be said of a workflow and of its tasks."""

from collections.abc import Mapping, Sequence
from typing import Any, Required, TypedDict
from uuid import UUID

from windlass.client.options import After, AskFirst, Moment, TaskId, TaskOptions
from windlass.client.workflows.documents import WorkflowStatus

WorkflowId = str | UUID


class NodeOptions(TaskOptions, total=False):
    """A task's options, as far as a task of a workflow may have them; None is as if it were not given."""

    parent_task_id: TaskId | None


class NewWorkflowTask(NodeOptions, total=False):
    """One task of a workflow, as the API takes it: references are written out, as `{"$from": "draft"}`."""

    key: Required[str]
    actor: Required[str]
    payload: Mapping[str, Any]
    depends_on: Sequence[TaskId | After]
    for_each: Mapping[str, str] | None
    approval: AskFirst | None


class WorkflowHead(TypedDict, total=False):
    """A workflow but for its name and its tasks. So many failures as `failure_threshold` stop it, until somebody
    resumes or cancels it; without one it fails when nothing of it can go on."""

    failure_threshold: int | None
    tags: Sequence[str] | None
    idempotency_key: str | None


class WorkflowFilter(TypedDict, total=False):
    """Which workflows; several values of `status` mean any of them, several of `tag` all of them."""

    status: WorkflowStatus | Sequence[WorkflowStatus] | None
    name: str | None
    tag: str | Sequence[str] | None
    user_id: str | None
    created_after: Moment | None
    created_before: Moment | None
