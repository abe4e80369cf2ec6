"""What can be asked for: the options of a task, the filters of a list, the settings of a provider."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, Required, TypedDict
from uuid import UUID

from windlass.client.task import Status

TaskId = str | UUID
Moment = datetime | str
Lane = Literal["fresh", "retry"]
Priority = Literal["critical", "high", "medium", "low"]
Role = Literal["user", "viewer", "admin"]


class After(TypedDict, total=False):
    """A task to wait for; `on="ended"` waits for its end in any way."""

    key: Required[TaskId]
    on: Literal["completed", "ended"]


class AskFirst(TypedDict, total=False):
    """A person is asked before the task may start; nobody's word for so long is a no."""

    message: Required[str]
    expires_in_seconds: float | None


class TaskOptions(TypedDict, total=False):
    """What every task may have, wherever it is written down; None is as if it were not given."""

    provider: str | None
    task_type: str | None
    priority: int | Priority | None
    max_retries: int | None
    retry_delays: Sequence[float] | Mapping[str, Any] | None
    timeout_seconds: float | None
    max_age_seconds: float | None
    run_at: Moment | None
    delay_seconds: float | None
    tags: Sequence[str] | None


class SubmitOptions(TaskOptions, total=False):
    """Everything of `POST /tasks` besides the actor and its payload; None is as if it were not given."""

    project_id: str | None
    workflow_id: str | None
    parent_task_id: TaskId | None
    depends_on: Sequence[TaskId | After] | None
    approval: AskFirst | None
    dedupe_key: str | None
    dedupe_ttl_seconds: float | None
    webhook_url: str | None
    user_id: str | None


class NewTask(SubmitOptions, total=False):
    """One task of a batch."""

    actor: Required[str]
    payload: Mapping[str, Any]


class Filter(TypedDict, total=False):
    """Which tasks; several values of `status` mean any of them, several of `tag` all of them."""

    status: Status | Sequence[Status] | None
    actor: str | None
    provider: str | None
    task_type: str | None
    subagent_type: str | None
    lane: Lane | None
    user_id: str | None
    tag: str | Sequence[str] | None
    project_id: str | None
    workflow_id: str | None
    workflow_run_id: str | None
    interaction_id: str | None
    parent_task_id: TaskId | None
    provider_job_id: str | None
    request_id: str | None
    error_type: str | None
    fingerprint: str | None
    created_after: Moment | None
    created_before: Moment | None
    updated_after: Moment | None
    q: str | None


class Watched(TypedDict, total=False):
    """Which tasks a stream of many tells of; nothing given means all that the key may see."""

    task_id: TaskId | Sequence[TaskId] | None
    project_id: str | None
    workflow_id: str | None
    user_id: str | None


class Rate(TypedDict):
    """At most so many calls that order work."""

    limit: int
    per_seconds: int


class ProviderChange(TypedDict, total=False):
    """What an operator sets; None goes back to what the configuration says."""

    limit: int | None
    rate: Rate | None
    paused: bool | None
    breaker: Literal["auto", "open", "closed"] | None
    reason: str
