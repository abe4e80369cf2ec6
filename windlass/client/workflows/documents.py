"""A workflow with its nodes and edges, and a question to a person, as the API tells them."""

from datetime import datetime
from typing import Final, Literal

import msgspec

from windlass.client.task import Document, Status

WorkflowStatus = Literal["running", "completed", "failed", "escalated", "cancelled"]
Retry = Literal["none", "failed", "failed-and-downstream"]
On = Literal["completed", "ended"]

GOES_ON: Final = "running"


class WorkflowCounts(Document, frozen=True, kw_only=True):
    """How many of its tasks are what; those of a `for_each` are one more together, until they are there."""

    total: int = 0
    live: int = 0
    completed: int = 0
    dead: int = 0
    cancelled: int = 0


class NodeError(Document, frozen=True, kw_only=True):
    """Why a list could not become tasks."""

    type: str
    message: str = ""


class WorkflowChild(Document, frozen=True, kw_only=True):
    """One task for an element of a list: `pages[3]`."""

    key: str
    task_id: str
    status: Status


class WorkflowNode(Document, frozen=True, kw_only=True):
    """A task of a workflow, or what stands for those of a `for_each`: then `children` are the tasks."""

    key: str | None
    """None of a task that was added later."""
    task_id: str | None
    status: Status
    children: tuple[WorkflowChild, ...] | None = None
    error: NodeError | None = None


class WorkflowEdge(Document, frozen=True, kw_only=True):
    """Who waits for whom, by their keys."""

    from_: str = msgspec.field(name="from")
    to: str
    on: On = "completed"


class Workflow(Document, frozen=True, kw_only=True):
    """A workflow as it stood when it was read. A list leaves out `nodes` and `edges`."""

    workflow_id: str
    name: str
    status: WorkflowStatus
    user_id: str = ""
    tags: tuple[str, ...] = ()
    failure_threshold: int | None = None
    failures: int = 0
    counts: WorkflowCounts = WorkflowCounts()
    cancel_requested: bool = False
    schedule_id: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    completed_at: datetime | None = None
    nodes: tuple[WorkflowNode, ...] = ()
    edges: tuple[WorkflowEdge, ...] = ()
    deduplicated: bool | None = None

    @property
    def goes_on(self) -> bool:
        """By itself: one that is escalated waits for a person."""
        return self.status == GOES_ON

    def node(self, key: str) -> WorkflowNode:
        """Raises KeyError with the keys that there are."""
        for each in self.nodes:
            if each.key == key:
                return each
        there = ", ".join(each.key for each in self.nodes if each.key is not None) or "none"
        raise KeyError(f"workflow {self.workflow_id} has no task {key!r}; there are: {there}")

    def task_id(self, key: str) -> str:
        """Of one task; KeyError where there is none, or a task for each element of a list."""
        node = self.node(key)
        if node.task_id is None:
            raise KeyError(f"{key!r} of workflow {self.workflow_id} is one task for each element: see its `children`")
        return node.task_id


class Asked(Document, frozen=True, kw_only=True):
    """A task that waits for a person's word."""

    task_id: str
    user_id: str | None = None
    workflow_id: str | None = None
    key: str | None = None
    message: str | None = None
    since: datetime | None = None
    expires_at: datetime | None = None
