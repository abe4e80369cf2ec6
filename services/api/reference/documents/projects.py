"""Projects as they go out, for the OpenAPI document."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from windlass.services.api.reference.documents.tasks import Document, TaskErrorDocument
from windlass.shared.project_states import ItemState, QueueState

Mode = Literal["single", "loop"]


class CountsDocument(Document):
    """How many items there are of each kind."""

    waiting: int
    running: int
    done: int
    failed: int
    skipped: int


class StillRunning(Document):
    """A task of the run, or one that came of it, that is not proven to have stopped."""

    task_id: UUID
    worker_id: str | None
    hostname: str | None
    since: datetime
    why: str


class OpenJob(Document):
    """Work that a provider has been given, which nobody can kill."""

    task_id: UUID
    provider: str
    provider_job_id: Annotated[str | None, Field(description="For viewers and admins; null for users.")]
    since: datetime | None


class ProjectQueueDocument(Document):
    """What a project's queue does now."""

    state: QueueState
    is_running: Annotated[bool, Field(description="Until it is idle.")]
    should_stop: bool
    mode: Mode | None
    current_run_id: UUID | None
    current_task_id: UUID | None
    started_at: datetime | None
    stopped_at: datetime | None
    elapsed_ms: int | None
    stop_reason: Literal["finished", "stopped", "forced", "failed"] | None
    last_error: TaskErrorDocument | None
    counts: CountsDocument
    still_running: Annotated[list[StillRunning] | None, Field(description="After a force-stop, until its proof.")] = (
        None
    )
    open_jobs: list[OpenJob] | None = None


class StoppedDocument(ProjectQueueDocument):
    """The queue, and that it was told to stop."""

    success: bool


class ProjectDocument(Document):
    """A project, with its queue."""

    project_id: UUID
    name: str
    user_id: str
    defaults: dict[str, Any]
    on_failure: Literal["stop", "continue"]
    archived_at: datetime | None
    created_at: datetime
    updated_at: datetime
    queue: ProjectQueueDocument
    deduplicated: Annotated[bool | None, Field(description="It was made before, under the same key.")] = None


class ProjectPage(Document):
    """Projects, newest first."""

    items: list[ProjectDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `cursor`.")] = None


class ItemDocument(Document):
    """A task to be, or one that was."""

    item_id: UUID
    position: Annotated[str, Field(description="A number; the smallest stands first.")]
    title: str | None
    state: ItemState
    task: Annotated[dict[str, Any], Field(description="As it is submitted when its run begins, defaults and all.")]
    run_id: Annotated[UUID | None, Field(description="Its last run, as long as it was not changed since.")]
    task_id: UUID | None


class ItemList(Document):
    """The items that were added, in their order."""

    items: list[ItemDocument]


class ItemPage(ItemList):
    """The backlog in its order."""

    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `cursor`.")] = None


class ReceiptTask(Document):
    """How it is known that nothing of a task lives."""

    task_id: UUID
    worker_id: str | None
    attempt: int
    status: str
    ended_at: datetime | None
    proof: Annotated[
        Literal["returned", "keeper", "guardian", "successor", "lease"] | None,
        Field(description="Null when nothing was under way."),
    ]
    processes: Annotated[dict[str, Any] | None, Field(description="What was done to its processes, and when.")]


class ReceiptDocument(Document):
    """Of a run that was stopped by force."""

    asked_at: datetime
    proven_at: datetime
    tasks: list[ReceiptTask]
    open_jobs: list[OpenJob]


class RunDocument(Document):
    """One task of a project, with all its retries."""

    run_id: UUID
    item_id: UUID
    task_id: UUID
    mode: Mode
    state: Literal["running", "completed", "dead", "cancelled", "withdrawn", "lost"]
    started_at: datetime
    ended_at: datetime | None
    revived_from: Annotated[UUID | None, Field(description="The run whose task was revived.")]
    schedule_id: Annotated[UUID | None, Field(description="The schedule that started it; null for most.")]
    error: TaskErrorDocument | None
    receipt: ReceiptDocument | None


class ForceStoppedDocument(StoppedDocument):
    """The queue, what was killed, and what is not proven to be dead."""

    killed_runs: list[RunDocument]


class RunPage(Document):
    """Runs, newest first."""

    items: list[RunDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `cursor`.")] = None


class ProjectEventDocument(Document):
    """One line of a project's history."""

    seq: Annotated[int, Field(description="From 1, without a gap.")]
    type: Annotated[str, Field(description="What happened to the queue, a run or an item.", examples=["start"])]
    at: datetime
    data: dict[str, Any]


class ProjectEventPage(Document):
    """A project's history, oldest first."""

    items: list[ProjectEventDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `after`.")] = None


class BatchAnswer(Document):
    """What has become of one project of a batch: its queue, or a problem."""

    project_id: UUID
    status_code: int
    queue: Annotated[dict[str, Any] | None, Field(description="As the call for one project answers.")] = None
    problem: Annotated[dict[str, Any] | None, Field(description="As the call for one project answers.")] = None


class ProjectBatchDocument(Document):
    """One answer for each project, in the order asked."""

    items: list[BatchAnswer]
