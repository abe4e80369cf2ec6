"""A class for the rows of each table, drawn from `shared/models` by `make fmt`; `make check` fails when it is stale."""

from datetime import date, datetime
from typing import Any
from uuid import UUID

from windlass.shared.store.record import Record


class ActorRow(Record):
    """A row of `actors`, or those of its columns that were selected."""

    name: str
    concurrency_limit: int | None


class ActorVersionRow(Record):
    """A row of `actor_versions`, or those of its columns that were selected."""

    actor: str
    version: str
    definition: dict[str, Any]
    registered_at: datetime | None
    created_at: datetime


class ApiKeyRow(Record):
    """A row of `api_keys`, or those of its columns that were selected."""

    key_id: str
    secret_hash: bytes
    role: str
    user_id: str
    created_at: datetime
    expires_at: datetime | None
    revoked_at: datetime | None
    name: str | None
    created_by: str | None


class AuditEntryRow(Record):
    """A row of `audit_log`, or those of its columns that were selected."""

    audit_id: int
    at: datetime
    key_id: str
    user_id: str
    action: str
    target: str | None
    details: dict[str, Any]


class BulkJobRow(Record):
    """A row of `bulk_jobs`, or those of its columns that were selected."""

    bulk_id: UUID
    action: str
    filter: dict[str, Any]
    user_id: str
    scope_user_id: str | None
    state: str
    matched: int
    done: int
    changed: int
    last_task_id: UUID | None
    canary: int | None
    canary_ids: list[UUID]
    reason: str | None
    created_at: datetime
    updated_at: datetime
    duplicates: int


class ContentRow(Record):
    """A row of `contents`, or those of its columns that were selected."""

    content_id: UUID
    generation_id: UUID
    index: int
    provider_url: str
    media_type: str
    extension: str
    place: str
    size_bytes: int
    sha256: str
    created_at: datetime


class FunctionSetRow(Record):
    """A row of `function_sets`, or those of its columns that were selected."""

    name: str
    level: int
    migrated_at: datetime


class GenerationRow(Record):
    """A row of `generations`, or those of its columns that were selected."""

    generation_id: UUID
    task_id: UUID | None
    attempt: int
    user_id: str
    provider: str
    operation: str
    status: str
    request: dict[str, Any]
    response: Any
    provider_job_id: str | None
    callback_hash: bytes
    callback: Any
    callback_at: datetime | None
    workflow_run_id: str | None
    interaction_id: str | None
    prompt_id: str | None
    source_data: Any
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    looked_at: datetime | None
    given_up: bool


class ProviderRow(Record):
    """A row of `providers`, or those of its columns that were selected."""

    name: str
    actor: str
    configured_limit: int | None
    limit_override: int | None
    lane_credit: int
    dispatch_version: int
    configured_rate: dict[str, Any] | None
    rate_override: dict[str, Any] | None
    paused: bool
    paused_until: datetime | None
    pause_reason: str | None
    trial_token: UUID | None
    breaker_mode: str
    breaker_state: str
    breaker_until: datetime | None
    breaker_reason: str | None
    breaker_changed_at: datetime | None
    rate_moments: list[datetime]
    rate_counts: list[int]


class ProviderEventRow(Record):
    """A row of `provider_events`, or those of its columns that were selected."""

    event_id: int
    provider: str
    type: str
    at: datetime
    reason: str
    data: dict[str, Any]


class ProviderResultRow(Record):
    """A row of `provider_results`, or those of its columns that were selected."""

    result_id: int
    provider: str
    at: datetime
    failed: bool
    task_id: UUID


class QueueRow(Record):
    """A row of `queues`, or those of its columns that were selected."""

    queue: str
    provider: str
    actor: str


class RateCounterRow(Record):
    """A row of `rate_counters`, or those of its columns that were selected."""

    key: str
    value: int
    expires_at: datetime


class ServerSecretRow(Record):
    """A row of `server_secrets`, or those of its columns that were selected."""

    name: str
    secret: bytes


class ServiceReportRow(Record):
    """A row of `service_reports`, or those of its columns that were selected."""

    service: str
    instance_id: str
    healthy: bool
    details: dict[str, Any]
    reported_at: datetime


class SessionRow(Record):
    """A row of `sessions`, or those of its columns that were selected."""

    session_hash: bytes
    key_id: str
    secure: bool
    created_at: datetime
    expires_at: datetime


class SessionLinkRow(Record):
    """A row of `session_links`, or those of its columns that were selected."""

    link_hash: bytes
    key_id: str
    created_at: datetime
    expires_at: datetime


class SubmissionKeyRow(Record):
    """A row of `submission_keys`, or those of its columns that were selected."""

    user_id: str
    kind: str
    key: str
    task_id: UUID
    body_hash: bytes | None
    expires_at: datetime


class TaskRow(Record):
    """A row of `tasks`, or those of its columns that were selected."""

    task_id: UUID
    actor: str
    task_type: str | None
    provider: str
    queue: str
    lane: str
    status: str
    priority: int
    payload: dict[str, Any]
    result: Any
    error: dict[str, Any] | None
    progress: dict[str, Any] | None
    checkpoint: Any
    attempt: int
    retry_count: int
    max_retries: int
    interrupt_count: int
    stall_count: int
    rate_limited_count: int
    available_at: datetime
    expires_at: datetime | None
    max_age_seconds: float | None
    timeout_seconds: float
    created_at: datetime
    updated_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    worker_id: str | None
    claim_token: UUID | None
    heartbeat_at: datetime | None
    lease_expires_at: datetime | None
    cancel_requested: bool
    doorbell_token: UUID | None
    doorbell_at: datetime | None
    doorbell_count: int
    report_count: int
    last_seq: int
    unmet: int
    user_id: str
    tags: list[str]
    project_id: str | None
    workflow_id: str | None
    workflow_run_id: str | None
    interaction_id: str | None
    parent_task_id: UUID | None
    depends_on: list[UUID]
    dedupe_key: str | None
    provider_job_id: str | None
    exit_code: int | None
    error_fingerprint: str | None
    job_open: bool
    traceparent: str | None
    suspicion: int
    retry_delays: dict[str, Any] | None
    level: int
    concerns: int
    life: int
    held: list[str]
    held_at: datetime | None
    due_at: datetime | None
    concurrency_key: str | None
    usage: dict[str, Any] | None


class TaskChildRow(Record):
    """A row of `task_children`, or those of its columns that were selected."""

    task_id: UUID
    place: str
    child_id: UUID
    life: int


class TaskCountRow(Record):
    """A row of `task_counts`, or those of its columns that were selected."""

    user_id: str
    provider: str
    status: str
    tasks: int
    actor: str


class TaskDependencyRow(Record):
    """A row of `task_dependencies`, or those of its columns that were selected."""

    parent_id: UUID
    child_id: UUID


class TaskEventRow(Record):
    """A row of `task_events`, or those of its columns that were selected."""

    task_id: UUID
    seq: int
    type: str
    at: datetime
    attempt: int
    data: dict[str, Any]
    xid: int


class TaskQueueMetricRow(Record):
    """A row of `task_queue_metrics`, or those of its columns that were selected."""

    day: date
    actor: str
    created: int
    completed: int
    failed: int
    average_latency_seconds: float | None
    error_rate: float | None
    heartbeat_delay_seconds: float | None
    updated_at: datetime


class TaskStepRow(Record):
    """A row of `task_steps`, or those of its columns that were selected."""

    task_id: UUID
    name: str
    attempt: int
    result: Any
    elapsed_ms: int
    created_at: datetime


class TaskTagRow(Record):
    """A row of `task_tags`, or those of its columns that were selected."""

    tag: str
    task_id: UUID


class TaskTallyRow(Record):
    """A row of `task_tallies`, or those of its columns that were selected."""

    tally_id: int
    user_id: str
    provider: str
    status: str
    tasks: int
    actor: str


class UnsettledRow(Record):
    """A row of `unsettled`, or those of its columns that were selected."""

    unsettled_id: int
    parent_id: UUID
    revived: bool
    settled_to: UUID
    since: datetime


class UntoldRow(Record):
    """A row of `untold`, or those of its columns that were selected."""

    untold_id: int
    subject: str
    task_id: UUID
    seq: int
    move: dict[str, Any]
    error: str
    tries: int
    since: datetime
    tell_at: datetime


class WorkerRow(Record):
    """A row of `workers`, or those of its columns that were selected."""

    worker_id: str
    hostname: str
    pid: int
    queues: list[str]
    capacity: int
    state: str
    started_at: datetime
    heartbeat_at: datetime
    stop_reason: str | None
    lost_tasks: int
    actor_versions: dict[str, Any]
    broken: dict[str, Any]
    drain_requested_at: datetime | None
    drain_reason: str | None
