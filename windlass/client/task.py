"""A task and its history, as the API tells them; fields that this version does not know are passed over."""

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

import msgspec

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

    Result_co = TypeVarWithDefault("Result_co", covariant=True, default=Any)
    """So that `Task` alone is a task of which nobody knows what it returns."""
else:
    Result_co = TypeVar("Result_co", covariant=True)

Status = Literal["blocked", "queued", "running", "retrying", "completed", "dead", "cancelled"]
ENDED: Final = frozenset({"completed", "dead", "cancelled"})

T = TypeVar("T")


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """Something that the API told: it does not change, and what is unknown in it does no harm."""


class Listing(Document, Generic[T], frozen=True, kw_only=True):
    """One page of a list."""

    items: tuple[T, ...]
    next_cursor: str | None = None


class Progress(Document, frozen=True, kw_only=True):
    elapsed_ms: float = 0
    message: str = ""
    percent: float | None = None
    updated_at: datetime | None = None


class TaskError(Document, frozen=True, kw_only=True):
    """Why an attempt failed."""

    type: str
    kind: str = "transient"
    message: str = ""
    details: Any = None
    stack_trace: str | None = None
    attempt: int | None = None


class Usage(Document, frozen=True, kw_only=True):
    """What a task has cost over all its attempts; a figure that nobody told is none."""

    cost_usd: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class AttemptUsage(Usage, frozen=True, kw_only=True):
    """One attempt's part of it."""

    attempt: int


class Approval(Document, frozen=True, kw_only=True):
    """What a person is asked before a task may start; `decision` is approved, rejected or expired."""

    message: str
    expires_in_seconds: float | None = None
    since: datetime | None = None
    """Since when only the word is missing."""
    expires_at: datetime | None = None
    decision: str | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    comment: str | None = None


class Step(Document, frozen=True, kw_only=True):
    """A step that an attempt has finished, and no later one does again."""

    name: str
    attempt: int = 0
    elapsed_ms: int = 0
    created_at: datetime | None = None


class Task(Document, Generic[Result_co], frozen=True, kw_only=True):
    """A task as it stood when it was read. A list leaves out `payload`, `result` and `error_history`.

    `Task[str]` is one whose result is text once it has completed; until then there is none.
    """

    task_id: str
    actor: str
    status: Status
    provider: str = ""
    queue: str = ""
    lane: str = "fresh"
    task_type: str | None = None
    priority: int = 2
    payload: Any = None
    input: Any = None
    """The payload with the results that it refers to, as the attempt got it."""
    input_error: dict[str, str] | None = None
    """Why there is no `input` although the payload refers to results: `pointer` and `detail`."""
    result: Result_co = None  # type: ignore[assignment] # see above
    error: TaskError | None = None
    error_history: tuple[TaskError, ...] = ()
    progress: Progress = Progress()
    attempt: int = 0
    retry_count: int = 0
    max_retries: int = 0
    interrupt_count: int = 0
    available_at: datetime | None = None
    expires_at: datetime | None = None
    timeout_seconds: float | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    started_at: datetime | None = None
    completed_at: datetime | None = None
    worker_id: str | None = None
    heartbeat_at: datetime | None = None
    lease_expires_at: datetime | None = None
    cancel_requested: bool = False
    user_id: str | None = None
    tags: tuple[str, ...] = ()
    project_id: str | None = None
    workflow_id: str | None = None
    workflow_run_id: str | None = None
    interaction_id: str | None = None
    parent_task_id: str | None = None
    depends_on: tuple[str, ...] = ()
    schedule_id: str | None = None
    dedupe_key: str | None = None
    provider_job_id: str | None = None
    exit_code: int | None = None
    usage: Usage | None = None
    usage_by_attempt: tuple[AttemptUsage, ...] | None = None
    """If it has cost something: each attempt's part of it."""
    title: str | None = None
    """In lists: the beginning of what it is about."""
    held: tuple[str, ...] = ()
    concurrency_key: str | None = None
    workflow_key: str | None = None
    approval: Approval | None = None
    steps: tuple[Step, ...] = ()
    deduplicated: bool = False
    webhook_secret: str | None = None
    """Told once: where its `webhook_url` has made an endpoint."""

    @property
    def has_ended(self) -> bool:
        return self.status in ENDED


class SubmittedTask(Document, frozen=True, kw_only=True):
    """One task of a batch."""

    task_id: str
    deduplicated: bool = False
    webhook_secret: str | None = None
    """Told once: where its `webhook_url` has made an endpoint."""


class Batch(Document, frozen=True, kw_only=True):
    tasks: tuple[SubmittedTask, ...]


class Event(Document, frozen=True, kw_only=True):
    """One row of a task's history.

    `type` is a transition's name, or dispatch, progress, output, cancel-requested, hold, release, restore,
    step.
    """

    seq: int
    type: str
    at: datetime
    attempt: int = 0
    data: Any = None


class StreamToken(Document, frozen=True, kw_only=True):
    """Opens one task's stream where no header can be sent: while the task lives, and five minutes more."""

    token: str
    expires_at: datetime
    url: str


class Why(Document, frozen=True, kw_only=True):
    """Why a task is not running."""

    reason: str
    message: str = ""
    details: Any = None
