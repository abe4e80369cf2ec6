"""Agent events, answers of memory, models, jobs and daily figures, as the API tells them."""

from datetime import date, datetime
from typing import Any, Literal

import msgspec

from windlass.client.task import Document

JobState = Literal["waiting", "done", "failed"]
Grouping = Literal["actor", "subagent_type", "provider", "user_id", "project_id"]


class AgentEvent(Document, frozen=True, kw_only=True):
    """One end of one life of a task: what was asked, what came out, how it ended; scrubbed and short."""

    event_id: str
    task_id: str
    at: datetime
    status: str = "completed"
    title: str = ""
    text: str = ""
    actor: str = ""
    provider: str = ""
    subagent_type: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    workflow_id: str | None = None
    life: int = 1
    attempt: int = 0
    data: dict[str, Any] = msgspec.field(default_factory=dict)
    """Its `usage`, and the `error_type` of one that died."""


class Hit(Document, frozen=True, kw_only=True):
    """An event that was found; `matched` says by what: `text`, `vector` or both."""

    event: AgentEvent
    score: float = 0
    matched: tuple[str, ...] = ()


class ModelName(Document, frozen=True, kw_only=True):
    model_id: str
    name: str


class Found(Document, frozen=True, kw_only=True):
    """The nearest first, and how they were come by."""

    items: tuple[Hit, ...]
    model: ModelName | None = None
    """Whose vectors were compared."""
    coverage: float | None = None
    """The share of what could be found that has such a vector."""
    exact: bool = True
    """All of them were compared, and not only the newest and those that the words have found."""
    degraded: bool = False
    """No vector for the question came in time: words alone."""


class EmbeddingModel(Document, frozen=True, kw_only=True):
    """A model that vectors are of; `state` is building, active or retired. Counts are not for users."""

    model_id: str
    name: str
    provider: str = ""
    dimensions: int = 0
    state: str = "building"
    vectors: int | None = None
    missing: int | None = None
    activate_when_filled: bool = False
    created_at: datetime | None = None
    activated_at: datetime | None = None


class JobError(Document, frozen=True, kw_only=True):
    type: str | None = None
    message: str | None = None


class EmbeddingJob(Document, frozen=True, kw_only=True):
    """Up to 64 events whose vectors one call brings."""

    job_id: str
    model_id: str
    task_id: str
    state: str
    events: int = 0
    error: JobError | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None


class Figures(Document, frozen=True, kw_only=True):
    """One day of one of what was asked for, by when tasks were created; what is not in `group_by` is none."""

    day: date
    actor: str | None = None
    subagent_type: str | None = None
    provider: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    created: int = 0
    completed: int = 0
    failed: int = 0
    cancelled: int = 0
    average_latency_seconds: float | None = None
    error_rate: float | None = None
    heartbeat_delay_seconds: float | None = None
    wait_p50_seconds: float | None = None
    wait_p90_seconds: float | None = None
    run_p50_seconds: float | None = None
    run_p90_seconds: float | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cost_usd: float | None = None
    failed_cost_usd: float | None = None
    """The part of it that went into attempts that failed."""
    updated_at: datetime | None = None
