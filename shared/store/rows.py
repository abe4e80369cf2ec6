"""Classes for the rows of tables, drawn from `shared/models` by `make fmt`; `make check` fails when they are stale.

Only classes that are imported are drawn. To get one more, import it and run `make fmt`.
"""

from datetime import datetime
from typing import Any
from uuid import UUID

from windlass.shared.store.record import Record


class AgentEventRow(Record):
    """A row of `agent_events`, or those of its columns that were selected."""

    event_id: UUID
    task_id: UUID
    life: int
    attempt: int
    user_id: str
    actor: str
    provider: str
    subagent_type: str | None
    project_id: str | None
    workflow_id: str | None
    status: str
    title: str
    text: str
    data: dict[str, Any]
    at: datetime
    lexemes: Any
    gathered_at: datetime | None


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
    requeued: int


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


class DeliveryRow(Record):
    """A row of `deliveries`, or those of its columns that were selected."""

    delivery_id: UUID
    webhook_id: UUID
    body_id: int
    type: str
    subject: str
    life: int
    seq: int
    named: bool
    state: str
    reason: str | None
    task_id: UUID
    attempts: int
    last_status: int | None
    created_at: datetime
    delivered_at: datetime | None


class DeliveryTryRow(Record):
    """A row of `delivery_tries`, or those of its columns that were selected."""

    try_id: int
    delivery_id: UUID
    webhook_id: UUID
    task_id: UUID
    attempt: int
    at: datetime
    delivered: bool
    status_code: int | None
    elapsed_ms: int | None
    error: str | None
    excerpt: str | None
    gone: bool


class EmbeddingJobRow(Record):
    """A row of `embedding_jobs`, or those of its columns that were selected."""

    job_id: UUID
    model_id: UUID
    task_id: UUID
    event_ids: list[UUID]
    state: str
    error: dict[str, Any] | None
    created_at: datetime
    updated_at: datetime


class EmbeddingModelRow(Record):
    """A row of `embedding_models`, or those of its columns that were selected."""

    model_id: UUID
    name: str
    provider: str
    dimensions: int
    state: str
    filled_to: UUID | None
    is_filled: bool
    activate_when_filled: bool
    created_at: datetime
    activated_at: datetime | None


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


class GroupFailureRow(Record):
    """A row of `group_failures`, or those of its columns that were selected."""

    group_id: UUID
    task_id: UUID
    life: int


class OutboxMoveRow(Record):
    """A row of `outbox`, or those of its columns that were selected."""

    id: int
    xid: int
    feature: str
    subject: UUID
    task_id: UUID | None
    life: int | None
    seq: int | None
    move: str
    status: str | None
    at: datetime
    data: dict[str, Any] | None


class ProjectRow(Record):
    """A row of `projects`, or those of its columns that were selected."""

    project_id: UUID
    user_id: str
    name: str
    defaults: dict[str, Any]
    on_failure: str
    state: str
    mode: str | None
    current_run_id: UUID | None
    forced_at: datetime | None
    started_at: datetime | None
    stopped_at: datetime | None
    stop_reason: str | None
    last_error: dict[str, Any] | None
    last_seq: int
    archived_at: datetime | None
    created_at: datetime
    updated_at: datetime


class ProjectEventRow(Record):
    """A row of `project_events`, or those of its columns that were selected."""

    project_id: UUID
    seq: int
    type: str
    at: datetime
    data: dict[str, Any]


class ProjectRunRow(Record):
    """A row of `project_runs`, or those of its columns that were selected."""

    run_id: UUID
    project_id: UUID
    item_id: UUID
    task_id: UUID
    life: int
    attempts_before: int
    mode: str
    named: bool
    state: str
    started_at: datetime
    ended_at: datetime | None
    error: dict[str, Any] | None
    receipt: dict[str, Any] | None
    revived_from: UUID | None
    schedule_id: UUID | None


class ProviderRow(Record):
    """A row of `providers`, or those of its columns that were selected."""

    name: str
    actor: str
    configured_limit: int | None
    limit_override: int | None
    lane_credit: int
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
    retry_share: int


class ProviderEventRow(Record):
    """A row of `provider_events`, or those of its columns that were selected."""

    event_id: int
    provider: str
    type: str
    at: datetime
    reason: str
    data: dict[str, Any]


class ScheduleRow(Record):
    """A row of `schedules`, or those of its columns that were selected."""

    schedule_id: UUID
    user_id: str
    name: str
    cron: str | None
    every_seconds: int | None
    timezone: str
    target: dict[str, Any]
    kind: str
    prepared: dict[str, Any]
    overlap: str
    catch_up: str
    catch_up_window_seconds: float
    jitter_seconds: float
    pause_after_failures: int | None
    state: str
    pause_reason: str | None
    failures: int
    anchor_at: datetime
    last_due_at: datetime
    next_due_at: datetime | None
    next_at: datetime | None
    last_started_at: datetime | None
    version: int
    last_seq: int
    declared_by: str | None
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None
    pause_note: str | None


class ScheduleEventRow(Record):
    """A row of `schedule_events`, or those of its columns that were selected."""

    schedule_id: UUID
    seq: int
    type: str
    at: datetime
    data: dict[str, Any]


class ScheduleRunRow(Record):
    """A row of `schedule_runs`, or those of its columns that were selected."""

    schedule_id: UUID
    due_at: datetime
    outcome: str
    reason: str | None
    cause: str
    task_id: UUID | None
    workflow_id: UUID | None
    project_id: UUID | None
    run_id: UUID | None
    count: int
    until: datetime | None
    start: dict[str, Any] | None
    decided_at: datetime
    ended_at: datetime | None
    ended_as: str | None


class ServiceReportRow(Record):
    """A row of `service_reports`, or those of its columns that were selected."""

    service: str
    instance_id: str
    healthy: bool
    details: dict[str, Any]
    reported_at: datetime


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
    concerns: int
    life: int
    held: list[str]
    held_at: datetime | None
    due_at: datetime | None
    concurrency_key: str | None
    usage: dict[str, Any] | None
    turn_at: datetime | None
    request_id: str | None
    workflow_key: str | None
    approval: dict[str, Any] | None
    asked_at: datetime | None
    ask_expires_at: datetime | None
    webhook_id: UUID | None
    schedule_id: UUID | None
    claim_xid: int
    group_id: UUID | None


class TaskEventRow(Record):
    """A row of `task_events`, or those of its columns that were selected."""

    task_id: UUID
    seq: int
    type: str
    at: datetime
    attempt: int
    data: dict[str, Any]
    xid: int


class TaskStepRow(Record):
    """A row of `task_steps`, or those of its columns that were selected."""

    task_id: UUID
    name: str
    attempt: int
    result: Any
    elapsed_ms: int
    created_at: datetime


class WebhookRow(Record):
    """A row of `webhooks`, or those of its columns that were selected."""

    webhook_id: UUID
    user_id: str
    url: str
    events: list[str]
    filter: dict[str, Any]
    scope: str
    description: str | None
    listens: bool
    secret: bytes
    previous_secret: bytes | None
    previous_until: datetime | None
    state: str
    reason: str | None
    failing_since: datetime | None
    changed_at: datetime
    probe_at: datetime | None
    probing: bool
    created_at: datetime
    updated_at: datetime
    deleted_at: datetime | None


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
    claim_epoch: int
    whereabouts: dict[str, Any]
    async_capacity: int
    async_queues: list[str]


class WorkflowRow(Record):
    """A row of `workflows`, or those of its columns that were selected."""

    workflow_id: UUID
    user_id: str
    name: str
    status: str
    tags: list[str]
    failure_threshold: int | None
    failures: int
    total: int
    live: int
    completed: int
    dead: int
    cancelled: int
    cancel_requested: bool
    has_nodes: bool
    last_seq: int
    created_at: datetime
    updated_at: datetime
    resumed_at: datetime | None
    completed_at: datetime | None
    schedule_id: UUID | None


class WorkflowNodeRow(Record):
    """A row of `workflow_nodes`, or those of its columns that were selected."""

    node_id: UUID
    workflow_id: UUID
    template: dict[str, Any]
    error: dict[str, Any] | None
