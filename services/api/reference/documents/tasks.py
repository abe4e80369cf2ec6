"""The shapes of tasks and their stories as they go out, described for readers and for machines.

Answers are built as plain dictionaries, for speed; the tests hold each of them against these descriptions.
"""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from windlass.shared.reasons import OF_WHY
from windlass.shared.states import Lane, State


class Document(BaseModel):
    """What is described here is all there is: an answer with one field more or less is a mistake."""

    model_config = ConfigDict(extra="forbid")


class FieldProblem(Document):
    """One field that is not as it should be."""

    pointer: Annotated[str, Field(description="A JSON pointer to the field.", examples=["/payload/seconds"])]
    detail: str


class ProblemDocument(Document):
    """An error as RFC 9457 writes it; `code` is stable, so programs can rely on it."""

    type: Annotated[str, Field(examples=["/problems/invalid-payload"])]
    code: Annotated[str, Field(examples=["invalid-payload"])]
    title: Annotated[str, Field(examples=["Invalid payload"])]
    status: Annotated[int, Field(examples=[422])]
    detail: Annotated[str, Field(description="What happened, and what to do next.")]
    request_id: Annotated[str, Field(description="Finds this request in the server's log.")]
    errors: Annotated[list[FieldProblem] | None, Field(description="The fields that failed a check.")] = None


class TaskErrorDocument(Document):
    """How an attempt failed."""

    type: Annotated[str, Field(examples=["ServiceUnavailable"])]
    kind: Annotated[Literal["transient", "permanent"], Field(description="Whether trying again may help.")]
    message: str
    details: Annotated[
        dict[str, Any] | None,
        Field(description="`retries_exhausted: true` when the last retry was used up. Users see our own flags only."),
    ]
    stack_trace: Annotated[str | None, Field(description="For admins; null for everybody else, and in lists.")]
    attempt: Annotated[int, Field(description="The attempt that failed.")]


class AttemptErrorDocument(TaskErrorDocument):
    """How an attempt failed, and when."""

    at: datetime


class ProgressDocument(Document):
    """How far a task is: in the actor's words, or in its state's where the actor says nothing."""

    elapsed_ms: Annotated[int, Field(description="Since the latest attempt began.")]
    message: Annotated[str, Field(examples=["Step 3 of 10"])]
    percent: Annotated[float | None, Field(description="Null when not known.", examples=[30.0])]
    updated_at: datetime


class UsageDocument(Document):
    """What work has cost, over all attempts, failed ones too; a figure that nobody told is null."""

    cost_usd: Annotated[float | None, Field(examples=[0.0147])]
    prompt_tokens: Annotated[int | None, Field(examples=[812])]
    completion_tokens: Annotated[int | None, Field(examples=[96])]


class AttemptUsageDocument(UsageDocument):
    """What one attempt has cost."""

    attempt: int


class ApprovalDocument(Document):
    """What a person is asked before the task may start, and what that person has decided."""

    message: str
    expires_in_seconds: float | None = None
    since: Annotated[datetime | None, Field(description="Since when only a word is missing.")]
    expires_at: Annotated[datetime | None, Field(description="When nobody's word becomes a no.")]
    decision: Literal["approved", "rejected", "expired"] | None = None
    decided_at: datetime | None = None
    decided_by: str | None = None
    comment: str | None = None


class ListedTaskDocument(Document):
    """A task as lists show it: without its payload and its result."""

    task_id: Annotated[UUID, Field(description="A UUIDv7: later tasks have greater ids.")]
    actor: Annotated[str, Field(description="The kind of work.", examples=["probe"])]
    task_type: str | None
    provider: Annotated[str, Field(description="Who does the work.", examples=["probe"])]
    queue: Annotated[str, Field(description="The RabbitMQ queue: `{actor}.{provider}`.", examples=["probe.probe"])]
    lane: Annotated[Lane, Field(description="`fresh` has never failed; `retry` has, and gets the smaller share.")]
    status: State
    priority: Annotated[int, Field(ge=0, le=9, description="0 critical, 1 high, 2 medium, 3 low, 4 to 9 below.")]
    error: Annotated[TaskErrorDocument | None, Field(description="The last failure; null once it has completed.")]
    progress: ProgressDocument
    attempt: Annotated[int, Field(description="Starts so far; it only ever grows, also over revivals.")]
    retry_count: Annotated[int, Field(description="Failures that used up one of `max_retries`.")]
    max_retries: int
    interrupt_count: Annotated[int, Field(description="How often its worker was told to stop; costs no retry.")]
    available_at: Annotated[datetime, Field(description="Not started before; also not while it is held.")]
    expires_at: Annotated[datetime | None, Field(description="Buried, not started, after this.")]
    timeout_seconds: Annotated[float, Field(description="How long one attempt may take.")]
    created_at: datetime
    updated_at: datetime
    started_at: Annotated[datetime | None, Field(description="When the latest attempt began.")]
    completed_at: Annotated[datetime | None, Field(description="When it came to its end, whichever.")]
    worker_id: str | None
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    cancel_requested: bool
    user_id: str
    tags: list[str]
    project_id: str | None
    workflow_id: str | None
    workflow_run_id: str | None
    interaction_id: str | None
    parent_task_id: UUID | None
    depends_on: list[UUID]
    schedule_id: Annotated[UUID | None, Field(description="The schedule that started it; null for most.")]
    dedupe_key: str | None
    provider_job_id: Annotated[str | None, Field(description="The provider's own id of the job.")]
    exit_code: Annotated[int | None, Field(description="Of an agent's process.")]
    usage: Annotated[UsageDocument | None, Field(description="What its attempts have cost; null if nobody said.")]
    held: Annotated[
        list[str],
        Field(description="Why it stands still although it waits: `workflow`, `key`, `endpoint`; mostly empty."),
    ]
    concurrency_key: Annotated[str | None, Field(description="So many of one key run at once, at most.")]
    workflow_key: Annotated[str | None, Field(description="What it is called in its workflow.", examples=["draft"])]
    approval: Annotated[ApprovalDocument | None, Field(description="Who is asked before it starts; null for most.")]
    title: Annotated[
        str | None,
        Field(
            description="In lists: the beginning of the prompt, content or first text of the payload; null where"
            " there is none, or the payload is large."
        ),
    ] = None
    payload: Annotated[dict[str, Any] | None, Field(description="Only with `full=true`.")] = None
    result: Annotated[Any, Field(description="Only with `full=true`.")] = None
    error_history: Annotated[
        list[AttemptErrorDocument] | None,
        Field(description="Every attempt's error, oldest first; in lists only with `full=true`."),
    ] = None


class StepDocument(Document):
    """A step that has finished: a later attempt does not do it again."""

    name: str
    attempt: int
    elapsed_ms: int
    created_at: datetime


class InputErrorDocument(Document):
    """A reference that leads nowhere, or a payload that is too large with the results in it."""

    pointer: Annotated[str, Field(description="Where in the payload, as a JSON pointer.")]
    detail: str


class TaskDocument(ListedTaskDocument):
    """One task, whole."""

    payload: dict[str, Any]
    result: Annotated[Any, Field(description="What the actor returned; null until it has completed.")]
    usage_by_attempt: Annotated[
        list[AttemptUsageDocument] | None, Field(description="If it has cost something: each attempt's part of it.")
    ] = None
    input: Annotated[
        dict[str, Any] | None,
        Field(description="The payload with the results in it that it refers to, as the attempt got it."),
    ] = None
    input_error: Annotated[
        InputErrorDocument | None,
        Field(description="Why there is no `input`, where the payload refers to results: the attempt got none either."),
    ] = None
    steps: Annotated[
        list[StepDocument] | None, Field(description="Those that have finished, where there are any; one task alone.")
    ] = None
    webhook_secret: Annotated[
        str | None, Field(description="Of the webhook that was made for the task's `webhook_url`: here alone.")
    ] = None
    deduplicated: Annotated[
        Literal[True] | None, Field(description="Present on the answer to a repeat: this task was there already.")
    ] = None


class TaskPage(Document):
    """Tasks, newest first."""

    items: list[ListedTaskDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `cursor`.")] = None


class BatchEntry(Document):
    """What has become of one task of a batch."""

    task_id: UUID
    deduplicated: Annotated[bool, Field(description="It was there already, under the same key.")]
    webhook_secret: Annotated[
        str | None, Field(description="Of the webhook that was made for the task's `webhook_url`: here alone.")
    ] = None


class BatchDocument(Document):
    """The batch's tasks, in its order."""

    tasks: list[BatchEntry]


class EventDocument(Document):
    """One line of a task's history."""

    seq: Annotated[int, Field(description="From 1, without a gap.")]
    type: Annotated[
        str,
        Field(
            description="The transition's name, or `dispatch`, `progress`, `output`, `cancel-requested`, `hold`, "
            "`release`, `restore`, `step`.",
            examples=["claim"],
        ),
    ]
    at: datetime
    attempt: int
    data: dict[str, Any]


class EventPage(Document):
    """A task's history, oldest first."""

    items: list[EventDocument]
    next_cursor: Annotated[str | None, Field(description="There are more: pass it as `after`.")] = None


class WhyDocument(Document):
    """Why a task is not running, as the dispatcher itself would decide now."""

    reason: Annotated[str, Field(json_schema_extra={"enum": [*OF_WHY]})]
    message: Annotated[str, Field(description="The same in a sentence.")]
    details: dict[str, Any]


class StreamTokenDocument(Document):
    """Opens one task's stream where no header can be sent."""

    token: str
    expires_at: Annotated[
        datetime, Field(description="Not before this; a token stays good while its task lives, and five minutes more.")
    ]
    url: Annotated[str, Field(description="The stream with the token in it.")]


class RecoveredDocument(Document):
    """What the sweep took back."""

    recovered: int
