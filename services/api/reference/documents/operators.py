"""The shapes of what operators look at: queues, providers, workers, keys, bulk jobs, the audit log, health."""

from datetime import date, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from windlass.services.api.reference.documents.tasks import Document, TaskDocument

Health = Literal["healthy", "degraded", "unhealthy"]


class QueueDocument(Document):
    """One queue, counted in one snapshot."""

    queue: Annotated[str, Field(examples=["probe.probe"])]
    actor: str
    provider: str
    fresh: Annotated[int, Field(description="Due and never failed.")]
    retry: Annotated[int, Field(description="Due again after a failure or a revival.")]
    scheduled: Annotated[int, Field(description="Waiting for their time.")]
    blocked: Annotated[int, Field(description="Waiting for other tasks.")]
    running: int
    dead: int
    oldest_age_seconds: Annotated[float | None, Field(description="How long the oldest due task has been due.")]
    ended: Annotated[int, Field(description="How many are completed, dead or cancelled, since ever.")]
    retry_ratio: Annotated[float, Field(description="The retry lane's share of the starts.", examples=[0.3])]
    workers: Annotated[int, Field(description="Live workers that serve it.")]


class StatesDocument(Document):
    """How many tasks are in each state."""

    blocked: int
    queued: int
    running: int
    retrying: int
    completed: int
    dead: int
    cancelled: int


class TotalsDocument(Document):
    """The same figures over all queues, also over those of providers that are no longer configured."""

    fresh: int
    retry: int
    scheduled: int
    blocked: int
    running: int
    dead: int


class QueuesDocument(Document):
    """Every queue, their sums, and all states."""

    queues: list[QueueDocument]
    totals: TotalsDocument
    states: StatesDocument
    retry_ratio: float


class EndedDocument(Document):
    """How many have ended in each way."""

    completed: int
    dead: int
    cancelled: int


class DiedDocument(Document):
    """How many died of one kind of error."""

    error_type: str
    count: int


class WaitingDocument(Document):
    """What goes on only when a person has decided."""

    kind: str
    count: int


class OverviewDocument(Document):
    """How things stand, and what has happened since."""

    since: Annotated[datetime, Field(description="From when on ends are counted: later than asked if there are many.")]
    states: StatesDocument
    ended: EndedDocument
    died: list[DiedDocument]
    cost_usd: Annotated[float, Field(description="Of those that have ended, as far as their providers say.")]
    waiting_for_you: list[WaitingDocument]


class DeadGroup(Document):
    """Dead tasks that died of the same thing."""

    error_type: str
    fingerprint: Annotated[str, Field(description="The error without its numbers and ids.")]
    count: int
    newest_at: datetime
    oldest_at: datetime
    example_task_id: UUID
    message: str


class DeadGroups(Document):
    """Dead tasks by what they died of, the biggest group first."""

    items: list[DeadGroup]


class DeadPage(Document):
    """Dead tasks, whole, newest first."""

    items: list[TaskDocument]
    next_cursor: str | None = None


class MatchedDocument(Document):
    """How many tasks a bulk action would change."""

    matched: int


class StartedBulk(Document):
    """A bulk job that has begun."""

    bulk_id: UUID
    matched: int


class CanaryDocument(Document):
    """The tasks that go first."""

    wanted: int
    task_ids: list[UUID]


class BulkDocument(Document):
    """A bulk job and how far it is."""

    bulk_id: UUID
    action: Literal["retry", "cancel"]
    filter: dict[str, Any]
    state: Literal["running", "waiting-for-canary", "finished", "stopped"]
    matched: int
    done: Annotated[int, Field(description="Tasks looked at so far.")]
    changed: Annotated[int, Field(description="Tasks revived or cancelled so far.")]
    requeued: Annotated[
        int, Field(description="How many were tasks of projects' runs: their items are first in their backlogs again.")
    ] = 0
    duplicates: Annotated[
        int, Field(description="Tasks left as they are so far, because a live task has their `dedupe_key`.")
    ]
    reason: Annotated[str | None, Field(description="Why it was stopped.")]
    created_at: datetime
    updated_at: datetime
    canary: Annotated[CanaryDocument | None, Field(description="The tasks that go first, when asked for.")] = None


class LimitDocument(Document):
    """How many tasks may run at once; null is no limit."""

    configured: int | None
    override: Annotated[int | None, Field(description="What an operator has set over it.")]
    effective: int | None


class RateDocument(Document):
    """How many tasks may start in how many seconds; null is no limit."""

    configured: dict[str, int] | None
    override: dict[str, int] | None
    effective: dict[str, int] | None
    left: Annotated[int | None, Field(description="So many may start now; null without a rate.")]
    free_at: Annotated[datetime | None, Field(description="When the next may start, once none is left.")]


class SlotHolder(Document):
    """Who holds a slot, and since when."""

    task_id: UUID
    worker_id: str | None
    since: datetime


class SlotsDocument(Document):
    """The slots in use."""

    held: int
    holders: Annotated[list[SlotHolder] | None, Field(description="Null for users.")]


class PauseDocument(Document):
    """The provider asked for a pause."""

    until: datetime
    reason: str | None


class BreakerDocument(Document):
    """Whether the provider is trusted at the moment."""

    mode: Annotated[Literal["auto", "open", "closed"], Field(description="What an operator wants.")]
    state: Literal["closed", "open", "half-open"]
    until: datetime | None
    reason: str | None
    failures: Annotated[int, Field(description="In the window.")]
    results: Annotated[int, Field(description="In the window.")]


class ActionDocument(Document):
    """One thing that a provider can be asked for."""

    action: Annotated[str, Field(examples=["txt2img"])]
    params_schema: Annotated[dict[str, Any], Field(description="JSON Schema of `params`, by the provider's own names.")]


class CapabilitiesDocument(Document):
    """What a provider can be asked for, as its adapter declares it."""

    actions: Annotated[list[ActionDocument], Field(description="Empty where work is not ordered by actions.")]


class ProviderDocument(Document):
    """A provider: what may start, what runs, and what stands in the way."""

    name: str
    actor: Annotated[str, Field(description="The first of its actors.")]
    actors: list[str]
    queue: Annotated[str, Field(description="The first of its queues.")]
    queues: Annotated[list[str], Field(description="One for each of its actors.")]
    limit: LimitDocument
    rate: RateDocument
    slots: SlotsDocument
    paused: Annotated[bool, Field(description="By an operator.")]
    pause: Annotated[PauseDocument | None, Field(description="After a 429.")]
    breaker: BreakerDocument
    lane_credit: Annotated[int, Field(description="At 100 the next start is a retry's.")]
    retry_ratio: float
    workers: int
    capabilities: CapabilitiesDocument


class ProviderList(Document):
    """Every provider."""

    items: list[ProviderDocument]


class ProviderEventDocument(Document):
    """What happened to a provider as a whole, and why."""

    event_id: int
    at: datetime
    type: str
    reason: str
    data: Annotated[
        dict[str, Any], Field(description="Where an operator did it: `by`, and `why` if a reason was given.")
    ]


class ProviderEventPage(Document):
    """A provider's history, newest first."""

    items: list[ProviderEventDocument]
    next_cursor: str | None = None


class WorkerDocument(Document):
    """A process that runs tasks."""

    worker_id: Annotated[str, Field(description="Host name, process id and a random word.")]
    hostname: str
    pid: Annotated[int, Field(description="The process that runs the tasks.")]
    queues: list[str]
    capacity: int
    running: int
    state: Literal["active", "stopping", "stopped", "lost"]
    started_at: datetime
    heartbeat_at: datetime
    stop_reason: str | None
    actor_versions: Annotated[dict[str, str], Field(description="The version of each actor that it runs.")]
    broken: Annotated[dict[str, str], Field(description="The queues that it was to serve and cannot, and why.")]
    drain_requested_at: Annotated[datetime | None, Field(description="When an operator told it to finish and go.")]


class KilledDocument(Document):
    """Which worker is killed, and at which attempt."""

    task_id: UUID
    worker_id: str
    attempt: int


class WorkerList(Document):
    """The living first, then the latest."""

    items: list[WorkerDocument]


class DailyStatistics(Document):
    """One day of one of what was asked for, by when tasks were created; what is in `group_by` is there."""

    day: date
    actor: str | None = None
    subagent_type: str | None = None
    provider: str | None = None
    user_id: str | None = None
    project_id: str | None = None
    created: int
    completed: int
    failed: int
    cancelled: int
    average_latency_seconds: Annotated[float | None, Field(description="From submit to end, of the completed.")]
    error_rate: float | None
    heartbeat_delay_seconds: float | None
    wait_p50_seconds: Annotated[float | None, Field(description="From submit to the start of the last attempt.")]
    wait_p90_seconds: float | None
    run_p50_seconds: Annotated[float | None, Field(description="Of the last attempt.")]
    run_p90_seconds: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: Annotated[float | None, Field(description="Over all attempts; null if nobody said.")]
    failed_cost_usd: Annotated[
        float | None, Field(description="The part that went into attempts that failed, also of tasks that completed.")
    ]
    updated_at: datetime


class StatisticsList(Document):
    """Daily figures, the latest day first."""

    items: list[DailyStatistics]


class KeyDocument(Document):
    """A key, without its secret."""

    key_id: str
    role: Literal["user", "viewer", "admin"]
    user_id: str
    name: str | None
    created_at: datetime
    created_by: str | None
    expires_at: datetime | None
    revoked_at: datetime | None


class NewKeyDocument(Document):
    """A new key: its secret is shown this once."""

    key_id: str
    key: Annotated[str, Field(examples=["wl_7Hk2…_…"])]
    role: Literal["user", "viewer", "admin"]
    user_id: str
    name: str | None
    created_at: datetime
    expires_at: datetime | None


class KeyPage(Document):
    """Keys without their secrets, the latest first."""

    items: list[KeyDocument]
    next_cursor: str | None = None


class AuditEntryDocument(Document):
    """What an operator did."""

    audit_id: int
    at: datetime
    key_id: str
    user_id: str
    action: str
    target: str | None
    details: dict[str, Any]


class AuditPage(Document):
    """What operators did, newest first."""

    items: list[AuditEntryDocument]
    next_cursor: str | None = None


class ComponentDocument(Document):
    """One part, as it was last heard of."""

    status: Literal["healthy", "degraded", "unhealthy", "unknown"]
    detail: str | None = None
    revision: str | None = None
    version: str | None = None


class HealthDocument(Document):
    """The whole, in one word; the parts for those with a key."""

    status: Health
    timestamp: datetime
    components: dict[str, ComponentDocument] | None = None


class LiveDocument(Document):
    """The process answers."""

    status: Literal["alive"]


class ReadyDocument(Document):
    """Whether tasks can be accepted."""

    status: Literal["ready", "not-ready"]
    detail: str | None = None
    revision: str | None = None
