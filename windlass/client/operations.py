"""What an operator looks at: queues, providers, workers, keys, bulk actions, the audit log, health."""

from datetime import datetime
from typing import Any

import msgspec

from windlass.client.task import Document


class Queue(Document, frozen=True, kw_only=True):
    queue: str
    actor: str = ""
    provider: str = ""
    fresh: int = 0
    retry: int = 0
    scheduled: int = 0
    blocked: int = 0
    running: int = 0
    dead: int = 0
    oldest_age_seconds: float | None = None
    ended: int = 0
    retry_ratio: float | None = None
    workers: int | None = None


class Queues(Document, frozen=True, kw_only=True):
    """Every queue, and how many tasks are in each state."""

    queues: tuple[Queue, ...]
    totals: dict[str, int] = msgspec.field(default_factory=dict)
    states: dict[str, int] = msgspec.field(default_factory=dict)
    retry_ratio: float | None = None


class ErrorGroup(Document, frozen=True, kw_only=True):
    """Dead tasks that died of the same thing."""

    error_type: str | None
    count: int
    fingerprint: str = ""
    message: str | None = None
    newest_at: datetime | None = None
    oldest_at: datetime | None = None
    example_task_id: str | None = None


class BulkStarted(Document, frozen=True, kw_only=True):
    """A bulk action that goes on by itself; a dry run has no `bulk_id`."""

    matched: int
    bulk_id: str | None = None


class Bulk(Document, frozen=True, kw_only=True):
    """How far a bulk action has come; `state` is running, waiting-for-canary, finished or stopped."""

    bulk_id: str
    action: str
    state: str
    filter: Any = None
    matched: int = 0
    done: int = 0
    changed: int = 0
    duplicates: int = 0
    requeued: int = 0
    reason: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    canary: Any = None


class Setting(Document, frozen=True, kw_only=True):
    """What the configuration says, what an operator put over it, and which of them is in force."""

    configured: Any = None
    override: Any = None
    effective: Any = None


class RateSetting(Setting, frozen=True, kw_only=True):
    """With how many may start now, and when the next one may if none is left."""

    left: int | None = None
    free_at: datetime | None = None


class SlotHolder(Document, frozen=True, kw_only=True):
    task_id: str
    worker_id: str | None = None
    since: datetime | None = None


class Slots(Document, frozen=True, kw_only=True):
    held: int = 0
    holders: tuple[SlotHolder, ...] | None = None


class Pause(Document, frozen=True, kw_only=True):
    until: datetime | None = None
    reason: str | None = None


class Breaker(Document, frozen=True, kw_only=True):
    """`mode` is what the operator wants (auto, open, closed), `state` what it is."""

    mode: str = "auto"
    state: str = "closed"
    until: datetime | None = None
    reason: str | None = None
    failures: int | None = None
    results: int | None = None


class Action(Document, frozen=True, kw_only=True):
    """One thing that a provider can be asked for; `params_schema` is JSON Schema."""

    action: str
    params_schema: dict[str, Any] = msgspec.field(default_factory=dict)


class Capabilities(Document, frozen=True, kw_only=True):
    actions: tuple[Action, ...] = ()


class Provider(Document, frozen=True, kw_only=True):
    name: str
    actor: str = ""
    actors: tuple[str, ...] = ()
    queue: str = ""
    queues: tuple[str, ...] = ()
    limit: Setting = Setting()
    rate: RateSetting = RateSetting()
    slots: Slots = Slots()
    paused: bool = False
    pause: Pause | None = None
    breaker: Breaker = Breaker()
    lane_credit: Any = None
    retry_ratio: float | None = None
    workers: int | None = None
    capabilities: Capabilities = Capabilities()


class Worker(Document, frozen=True, kw_only=True):
    worker_id: str
    state: str
    hostname: str = ""
    pid: int | None = None
    queues: tuple[str, ...] = ()
    capacity: int = 0
    running: int = 0
    started_at: datetime | None = None
    heartbeat_at: datetime | None = None
    stop_reason: str | None = None
    actor_versions: dict[str, str] = msgspec.field(default_factory=dict)
    broken: dict[str, str] = msgspec.field(default_factory=dict)
    drain_requested_at: datetime | None = None


class SessionLink(Document, frozen=True, kw_only=True):
    """A url that signs a browser in once."""

    url: str
    expires_at: datetime | None = None


class ActorVersion(Document, frozen=True, kw_only=True):
    """A version of an actor that tasks are checked by; `workers` is not for users."""

    version: str
    live_workers: int = 0
    workers: tuple[str, ...] | None = None


class ForgottenActor(Document, frozen=True, kw_only=True):
    """What was removed with an actor: its queues, and its providers that served nothing else."""

    name: str
    queues: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()


class ActorDescription(Document, frozen=True, kw_only=True):
    """A kind of work; a list leaves out what it takes."""

    name: str
    description: str = ""
    built_in: bool = False
    default_provider: str | None = None
    providers: tuple[str, ...] = ()
    timeout_seconds: float = 0
    max_retries: int = 0
    max_age_seconds: float | None = None
    version: str = ""
    workers: int = 0
    payload_schema: dict[str, Any] = msgspec.field(default_factory=dict)
    result_schema: dict[str, Any] | None = None
    example: dict[str, Any] = msgspec.field(default_factory=dict)
    throws: tuple[str, ...] = ()
    concurrency_key: tuple[str, ...] = ()
    versions: tuple[ActorVersion, ...] = ()


class Key(Document, frozen=True, kw_only=True):
    """A key without its secret."""

    key_id: str
    role: str
    user_id: str
    name: str | None = None
    created_at: datetime | None = None
    created_by: str | None = None
    expires_at: datetime | None = None
    revoked_at: datetime | None = None


class NewKey(Key, frozen=True, kw_only=True):
    """The only time that the whole key is shown."""

    key: str


class AuditEntry(Document, frozen=True, kw_only=True):
    """One thing that an operator did."""

    audit_id: Any
    at: datetime
    action: str
    key_id: str | None = None
    user_id: str | None = None
    target: str | None = None
    details: Any = None


class Component(Document, frozen=True, kw_only=True):
    status: str
    detail: str | None = None
    revision: str | None = None
    version: str | None = None
    """The server's, of `postgres` and `broker`."""


class Health(Document, frozen=True, kw_only=True):
    """The components are for holders of a key."""

    status: str
    components: dict[str, Component] = msgspec.field(default_factory=dict)
    timestamp: datetime | None = None
