"""A project, its queue, its items and its runs, as the API tells them."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from windlass.client.task import Document, TaskError

QueueState = Literal["idle", "running", "stopping"]
ItemState = Literal["waiting", "running", "done", "failed", "skipped"]
RunState = Literal["running", "completed", "dead", "cancelled", "withdrawn", "lost"]
Mode = Literal["single", "loop"]
OnFailure = Literal["stop", "continue"]


class Counts(Document, frozen=True, kw_only=True):
    """How many items there are of each kind."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    failed: int = 0
    skipped: int = 0


class StillRunning(Document, frozen=True, kw_only=True):
    """A task of the run, or one that came of it, that is not proven to have stopped."""

    task_id: str
    worker_id: str | None = None
    hostname: str | None = None
    since: datetime | None = None
    why: str = ""


class OpenJob(Document, frozen=True, kw_only=True):
    """Work that a provider has been given, which nobody can kill."""

    task_id: str
    provider: str = ""
    provider_job_id: str | None = None
    since: datetime | None = None


class ProjectQueue(Document, frozen=True, kw_only=True):
    """What a project's queue does; `still_running` and `open_jobs` are there after a force-stop, until its proof."""

    state: QueueState
    is_running: bool = False
    should_stop: bool = False
    mode: Mode | None = None
    current_run_id: str | None = None
    current_task_id: str | None = None
    started_at: datetime | None = None
    stopped_at: datetime | None = None
    elapsed_ms: int | None = None
    stop_reason: str | None = None
    last_error: TaskError | None = None
    counts: Counts = Counts()
    still_running: tuple[StillRunning, ...] | None = None
    open_jobs: tuple[OpenJob, ...] | None = None


class Stopped(ProjectQueue, frozen=True, kw_only=True):
    """The queue, and that it was told to stop."""

    success: bool = True


class Project(Document, frozen=True, kw_only=True):
    """A project, with its queue."""

    project_id: str
    name: str
    queue: ProjectQueue
    user_id: str = ""
    defaults: dict[str, Any] = msgspec.field(default_factory=dict)
    on_failure: str = "stop"
    archived_at: datetime | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    deduplicated: bool | None = None


class Item(Document, frozen=True, kw_only=True):
    """A task to be, or one that was; `task` is what its run submits, defaults and all."""

    item_id: str
    state: ItemState
    position: str = ""
    title: str | None = None
    task: dict[str, Any] = msgspec.field(default_factory=dict)
    run_id: str | None = None
    task_id: str | None = None


class Items(Document, frozen=True, kw_only=True):
    """What was added, in its order."""

    items: tuple[Item, ...]


class Proof(Document, frozen=True, kw_only=True):
    """How it is known that nothing of a task lives; `proof` is returned, keeper, guardian, successor or lease,
    or none where nothing was under way."""

    task_id: str
    worker_id: str | None = None
    attempt: int = 0
    status: str = ""
    ended_at: datetime | None = None
    proof: str | None = None
    processes: dict[str, Any] | None = None


class Receipt(Document, frozen=True, kw_only=True):
    """Of a run that was stopped by force."""

    asked_at: datetime
    proven_at: datetime
    tasks: tuple[Proof, ...] = ()
    open_jobs: tuple[OpenJob, ...] = ()


class ProjectRun(Document, frozen=True, kw_only=True):
    """One task of a project, with all its retries."""

    run_id: str
    item_id: str
    task_id: str
    state: RunState
    mode: Mode = "single"
    started_at: datetime | None = None
    ended_at: datetime | None = None
    revived_from: str | None = None
    schedule_id: str | None = None
    error: TaskError | None = None
    receipt: Receipt | None = None


class ForceStopped(Stopped, frozen=True, kw_only=True):
    """What was killed and what is not proven to be dead: `success` only when nothing is left."""

    killed_runs: tuple[ProjectRun, ...] = ()


class ProjectEvent(Document, frozen=True, kw_only=True):
    """One row of a project's history; `type` is what happened to the queue, a run or an item."""

    seq: int
    type: str
    at: datetime
    data: dict[str, Any] = msgspec.field(default_factory=dict)


class BatchAnswer(Document, frozen=True, kw_only=True):
    """What has become of one project of a batch: its queue, or a problem."""

    project_id: str
    status_code: int
    queue: ForceStopped | None = None
    problem: dict[str, Any] | None = None


class BatchAnswers(Document, frozen=True, kw_only=True):
    """One for each project, in the order asked."""

    items: tuple[BatchAnswer, ...]
