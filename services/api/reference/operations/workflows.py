"""What workflows and approvals take and answer, beside what their handlers say themselves."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field

from windlass.services.api.access.reasons import Reasoned
from windlass.services.api.reference.documents.tasks import Document, TaskDocument
from windlass.services.api.reference.operation import Answer, Operation
from windlass.services.api.tasks.schemas import NewTask
from windlass.services.api.workflows.approvals import Comment
from windlass.services.api.workflows.handlers import Resume
from windlass.shared.states import State
from windlass.shared.submission.graphs import ForEach, Key, Wait
from windlass.shared.submission.workflows import WorkflowHead
from windlass.shared.workflow_states import WorkflowStatus


class NewWorkflowTask(NewTask):
    """A task of a workflow: as any other, by a key of its own."""

    key: Annotated[Key, Field(description="What it is called in the workflow.", examples=["draft"])]
    depends_on: Annotated[
        list[Wait],
        Field(max_length=1000, description="Keys of this workflow, or ids of other tasks; `{key, on}` for any end."),
    ] = Field(default_factory=list)  # type: ignore[assignment]
    for_each: Annotated[
        ForEach | None, Field(description="Becomes one task for each element of that list, at most 1,000.")
    ] = None


class NewWorkflowDocument(WorkflowHead):
    """A graph of tasks, stored all or none."""

    tasks: Annotated[list[NewWorkflowTask], Field(min_length=1, max_length=1000)]


class CountsDocument(Document):
    """How many of its tasks are what; what stands for those of a `for_each` counts as one of them."""

    total: int
    live: int
    completed: int
    dead: int
    cancelled: int


class ListedWorkflowDocument(Document):
    """A workflow as lists show it: without its nodes."""

    workflow_id: UUID
    name: str
    status: WorkflowStatus
    user_id: str
    tags: list[str]
    failure_threshold: int | None
    failures: Annotated[int, Field(description="Entries into `dead` since the last resume, each cascade once.")]
    counts: CountsDocument
    cancel_requested: bool
    schedule_id: Annotated[UUID | None, Field(description="The schedule that started it; null for most.")]
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None


class ChildDocument(Document):
    """One task for an element."""

    key: Annotated[str, Field(examples=["pages[3]"])]
    task_id: UUID
    status: State


class NodeErrorDocument(Document):
    """Why a list could not become tasks."""

    type: str
    message: str


class NodeDocument(Document):
    """A task of the workflow, or what stands for those of a `for_each`."""

    key: Annotated[str | None, Field(description="Null of a task that was added later.")]
    task_id: Annotated[UUID | None, Field(description="Null where `children` are the tasks.")]
    status: State
    children: list[ChildDocument] | None = None
    error: NodeErrorDocument | None = None


class EdgeDocument(Document):
    """Who waits for whom: by key, or by id where the other is in no or another workflow."""

    from_: Annotated[str, Field(alias="from")]
    to: str
    on: Literal["completed", "ended"]


class WorkflowDocument(ListedWorkflowDocument):
    """One workflow, whole."""

    nodes: list[NodeDocument]
    edges: list[EdgeDocument]
    deduplicated: Annotated[
        Literal[True] | None, Field(description="Present on the answer to a repeat: it was there already.")
    ] = None


class WorkflowPage(Document):
    """Workflows, newest first."""

    items: list[ListedWorkflowDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `cursor`.")] = None


class AskedDocument(Document):
    """A task that waits for a person's word."""

    task_id: UUID
    user_id: Annotated[str, Field(description="Who asks: the task's owner.")]
    workflow_id: str | None
    key: str | None
    message: str | None
    since: datetime
    expires_at: datetime | None


class ApprovalPage(Document):
    """What waits for a word, the oldest task first."""

    items: list[AskedDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `cursor`.")] = None


A_WORKFLOW = (WorkflowDocument,)
ONE = "/api/v1/workflows/{workflow_id}"

WORKFLOW_OPERATIONS: dict[tuple[str, str], Operation] = {
    ("POST", "/api/v1/workflows"): Operation(
        "Workflows",
        "Submit a workflow",
        {
            200: Answer("It was there already.", A_WORKFLOW, headers={"Idempotent-Replayed": "`true`."}),
            201: Answer("Stored for good, all of it.", A_WORKFLOW, headers={"Location": "Where it can be read."}),
        },
        problems=(403, 409),
        body=NewWorkflowDocument,
        example={
            "name": "report",
            "tasks": [
                {"key": "draft", "actor": "probe", "payload": {"result": "hello"}},
                {"key": "review", "actor": "probe", "payload": {"result": {"$from": "draft"}}, "depends_on": ["draft"]},
            ],
        },
    ),
    ("GET", "/api/v1/workflows"): Operation("Workflows", "List workflows", {200: Answer("A page.", (WorkflowPage,))}),
    ("GET", ONE): Operation(
        "Workflows",
        "Read a workflow",
        {200: Answer("The workflow.", A_WORKFLOW), 202: Answer("It still runs after `wait`.", A_WORKFLOW)},
        problems=(404,),
    ),
    ("GET", f"{ONE}/stream"): Operation(
        "Workflows",
        "Watch a workflow",
        {
            200: Answer("Server-sent events.", media_type="text/event-stream"),
            204: Answer("It has ended, and the client has read all of it."),
        },
        problems=(400, 404),
    ),
    ("POST", f"{ONE}/resume"): Operation(
        "Workflows",
        "Resume an escalated workflow",
        {202: Answer("It goes on.", A_WORKFLOW)},
        problems=(403, 404, 409),
        body=Resume,
        body_required=False,
        example={"retry": "failed"},
    ),
    ("POST", f"{ONE}/cancel"): Operation(
        "Workflows",
        "Cancel a workflow",
        {
            200: Answer("It is cancelled.", A_WORKFLOW),
            202: Answer("Workers are stopping its tasks.", A_WORKFLOW),
        },
        problems=(403, 404, 409),
        body=Reasoned,
        body_required=False,
        example={"reason": "not wanted any more"},
    ),
    ("GET", "/api/v1/approvals"): Operation(
        "Approvals", "List what waits for a word", {200: Answer("A page.", (ApprovalPage,))}
    ),
    **{
        ("POST", f"/api/v1/tasks/{{task_id}}/{verb}"): Operation(
            "Approvals",
            f"{verb.capitalize()} a task",
            {200: Answer("The task, as it is now.", (TaskDocument,))},
            problems=(403, 404, 409),
            body=Comment,
            body_required=False,
            example={"comment": comment},
        )
        for verb, comment in (("approve", "looks good"), ("reject", "the second picture is wrong"))
    },
}
