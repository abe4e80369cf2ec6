"""What can be done to tasks, one function per intent, each one a single call that Postgres does whole or not at all."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.shared.db import Database, Row, as_json
from windlass.shared.errors import WorkerLost
from windlass.shared.metrics import counting
from windlass.shared.reasons import Reason
from windlass.shared.retry_delays import BUILT_IN, RetrySettings
from windlass.shared.store.flow_control.flow import Rules

TASK_FIELDS = (
    "task_id", "actor", "task_type", "provider", "queue", "lane", "status", "priority", "payload", "result", "error",
    "progress", "attempt", "retry_count", "max_retries", "interrupt_count", "available_at", "expires_at",
    "timeout_seconds", "created_at", "updated_at", "started_at", "completed_at", "worker_id", "heartbeat_at",
    "lease_expires_at", "cancel_requested", "user_id", "tags", "project_id", "workflow_id", "workflow_run_id",
    "interaction_id", "parent_task_id", "depends_on", "dedupe_key", "provider_job_id", "exit_code",
)  # fmt: skip
"""The columns that a reader of a task is shown."""


TRACEPARENT = "(SELECT t.traceparent FROM tasks t WHERE t.task_id = answer.task_id)"
"""Beside what a function answers: so that what it returns is the same for programs that know nothing of it."""


BRIEFLY = "(SELECT set_config('lock_timeout', '50ms', true) AS wait OFFSET 0) AS patience CROSS JOIN LATERAL"
"""For a call that had rather come again than wait long for a lock; over with the statement. What is called has to be
given something of it (`WITH_PATIENCE`), or it might be called first."""

WITH_PATIENCE = "CASE WHEN patience.wait IS NOT NULL THEN {} END"


class UnknownDependency(Exception):
    """A task cannot depend on one that does not exist."""

    def __init__(self, missing: Sequence[str]) -> None:
        super().__init__(f"no such task: {', '.join(missing)}")
        self.missing = missing


class KeyInFlight(Exception):
    """Somebody else is just submitting under the same key, and has not come to an end."""


class KeyReused(Exception):
    """The idempotency key belongs to another request."""


class Submission(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A new task, as the API accepted it. There are thousands in a second: a frozen dataclass takes ten times as long
    to make, and reading what is left empty would take Postgres as long as storing the rest. It knows the defaults."""

    task_id: UUID
    actor: str
    provider: str
    payload: dict[str, Any]
    user_id: str
    timeout_seconds: float
    task_type: str | None = None
    priority: int = 2
    max_retries: int = 3
    max_age_seconds: float | None = None
    run_at: str | None = None
    delay_seconds: float | None = None
    tags: Sequence[str] = ()
    project_id: str | None = None
    workflow_id: str | None = None
    workflow_run_id: str | None = None
    interaction_id: str | None = None
    parent_task_id: UUID | None = None
    depends_on: Sequence[UUID] = ()
    reach: str | None = None
    """Whose tasks it may depend on: one user's, or everybody's."""
    dedupe_key: str | None = None
    dedupe_ttl_seconds: float = 86400
    idempotency_key: str | None = None
    idempotency_ttl_seconds: float = 86400
    body_hash: str | None = None
    traceparent: str | None = None
    """The trace that its submit belongs to, while somebody traces."""
    retry_delays: dict[str, Any] | None = None

    @property
    def has_keys(self) -> bool:
        return self.dedupe_key is not None or self.idempotency_key is not None


@dataclass(frozen=True)
class Claim:
    """A worker's wish to run a task, under a token of its own choosing."""

    task_id: UUID
    claim_token: UUID


@dataclass(frozen=True)
class Claimed:
    """An attempt that this worker owns until its lease ends."""

    task_id: UUID
    claim_token: UUID
    actor: str
    provider: str
    payload: dict[str, Any]
    checkpoint: Any
    attempt: int
    retry_count: int
    max_retries: int
    interrupt_count: int
    stall_count: int
    rate_limited_count: int
    timeout_seconds: float
    traceparent: str | None = None
    retry_delays: dict[str, Any] | None = None
    """Its own, by type of error, as its submitter has said."""


GRANTED = frozenset(each.name for each in fields(Claimed)) - {"claim_token"}


@dataclass(frozen=True)
class Refused:
    """A claim that was not granted, and why."""

    task_id: UUID
    reason: Reason


@dataclass(frozen=True)
class Report:
    """What a running attempt says, to be kept if it still owns the task."""

    task_id: UUID
    attempt: int
    claim_token: UUID
    number: int
    progress: dict[str, Any] | None = None
    checkpoint: Any = None
    events: Sequence[dict[str, Any]] = ()


class Ending(msgspec.Struct, frozen=True, omit_defaults=True):
    """How an attempt ended, as its owner decided; `events` are numbered before the end itself. Postgres knows the
    defaults, and need not read them."""

    task_id: UUID
    attempt: int
    claim_token: UUID
    transition: str
    result: Any = None
    error: dict[str, Any] | None = None
    exit_code: int | None = None
    delay_seconds: float = 0
    retry_cost: int = 0
    rate_limited: bool = False
    provider_failed: bool = False
    hopeless_if_others_pass: bool = False
    timeout_factor: float = 1
    progress: dict[str, Any] | None = None
    checkpoint: Any = None
    events: Sequence[dict[str, Any]] = ()
    proof: dict[str, Any] | None = None
    """What was done to the attempt's processes, as far as it had any: kept in the event of the end."""


async def submit(db: Database, submissions: Sequence[Submission]) -> list[Row]:
    """Stores all of them or none; once this returns they are durable. Their keys are not looked at."""
    return counting.stored(await _submit(db, "SELECT * FROM submit_tasks($1::text::jsonb)", submissions))


async def submit_keyed(db: Database, submissions: Sequence[Submission]) -> list[Row]:
    """Stores those that were not submitted before under one of their keys, all or none; returns the task of each, in
    their order, with `deduplicated`."""
    query = "SELECT deduplicated, (task).* FROM submit_keyed_tasks($1::text::jsonb)"
    return counting.stored(await _submit(db, query, submissions))


async def submit_batch(db: Database, submissions: Sequence[Submission]) -> list[tuple[UUID, bool]]:
    """Stores all of them or none, by their keys where they have some; returns each one's id, and whether it was there
    before."""
    if any(each.has_keys for each in submissions):
        query = "SELECT deduplicated, (task).* FROM submit_keyed_tasks($1::text::jsonb)"
        rows = counting.stored(await _submit(db, query, submissions))
        return [(row["task_id"], row["deduplicated"]) for row in rows]
    if any(each.depends_on for each in submissions):
        await submit(db, submissions)
    else:
        await _submit(db, "SELECT cardinality(store_tasks($1::text::jsonb))", submissions)
        counting.submitted(submissions)
    return [(each.task_id, False) for each in submissions]


async def _submit(db: Database, query: str, submissions: Sequence[Submission]) -> list[Row]:
    try:
        return await db.fetch(query, as_json(submissions))
    except asyncpg.PostgresError as error:
        if error.sqlstate == "WL404":
            raise UnknownDependency(str(getattr(error, "detail", "")).split(",")) from error
        if error.sqlstate == "WL409":
            raise KeyInFlight from error
        if error.sqlstate == "WL422":
            raise KeyReused from error
        raise


async def claim(
    db: Database,
    worker_id: str,
    claims: Sequence[Claim],
    lease_seconds: float,
    *,
    alone: bool = False,
    traced: bool = False,
    briefly: bool = False,
) -> list[Claimed | Refused]:
    """Takes the tasks that are waiting, due and have a slot free; the answers come in the order of the claims. Those
    that must run alone are for a process that does nothing else (`alone`). Their trace context, which never changes,
    is read only for who asks. For a lock it waits long, or only briefly."""
    tokens: dict[UUID, UUID] = {}
    for claim in claims:
        tokens.setdefault(claim.task_id, claim.claim_token)
    wanted = f"answer.*, {TRACEPARENT}" if traced else "answer.*"
    called = f"claim_tasks($1, $2, $3, {_patient('$4::float', briefly=briefly)}, $5) AS answer"
    query = f"SELECT {wanted} FROM {BRIEFLY if briefly else ''} {called}"  # noqa: S608 - all are written here
    rows = await db.fetch(query, list(tokens), list(tokens.values()), worker_id, lease_seconds, alone)
    rows_of = {row["task_id"]: row for row in rows}
    answers = [_answer(claim, tokens[claim.task_id], rows_of[claim.task_id]) for claim in claims]
    counting.claims_answered((answer, rows_of[answer.task_id]) for answer in answers)
    return answers


def _answer(claim: Claim, granted_to: UUID, row: Row) -> Claimed | Refused:
    refusal = row["refusal"]
    if claim.claim_token != granted_to:  # a doubled doorbell: two claims of one task in one call
        refusal = refusal or Reason.RUNNING
    if refusal is not None:
        return Refused(claim.task_id, Reason.of_refusal(refusal))
    # A newer schema's function may say more than this version knows: old and new run side by side during an upgrade.
    return Claimed(claim_token=granted_to, **{name: said for name, said in row.items() if name in GRANTED})


async def next_alone(db: Database, queues: Sequence[str]) -> Row | None:
    """The first of these queues that was rung for and must run alone: its `task_id` and `actor`."""
    return await db.fetchrow(
        """
        SELECT t.task_id, t.actor FROM (
            SELECT * FROM tasks WHERE status IN ('queued', 'retrying') AND doorbell_token IS NOT NULL OFFSET 0
        ) AS t
        WHERE runs_alone(t.suspicion) AND t.queue = ANY ($1) ORDER BY t.priority, t.available_at, t.task_id LIMIT 1
        """,
        list(queues),
    )


def _patient(argument: str, *, briefly: bool) -> str:
    return WITH_PATIENCE.format(argument) if briefly else argument


@dataclass(frozen=True)
class Heard:
    """What became of reports: whose task is still their own, and whose row somebody else has locked: to be offered
    again. The others have lost it."""

    kept: set[UUID]
    skipped: set[UUID]


async def report(db: Database, reports: Sequence[Report]) -> Heard:
    """Keeps progress, output and checkpoints, and waits for nobody."""
    rows = await db.fetch("SELECT * FROM report_tasks($1::text::jsonb, skip_locked => true)", as_json(reports))
    return Heard(
        {row["task_id"] for row in rows if not row["skipped"]}, {row["task_id"] for row in rows if row["skipped"]}
    )


async def end(db: Database, endings: Sequence[Ending], rules: Rules, *, briefly: bool = False) -> list[str | None]:
    """Ends attempts and returns each task's status after it, or none where it no longer belonged to the caller.

    What they say about their providers opens and closes breakers and pauses providers, by the rules. For a lock it
    waits long, or only briefly.
    """
    called = f"end_tasks($1::text::jsonb, {_patient('$2::text::jsonb', briefly=briefly)}) AS answer"
    query = f"SELECT answer.* FROM {BRIEFLY if briefly else ''} {called}"  # noqa: S608 - both are written here
    rows = await db.fetch(query, as_json(endings), as_json(rules))
    counting.attempts_ended(endings, rows)
    statuses = {row["claim_token"]: row["status"] for row in rows}
    return [statuses.get(ending.claim_token) for ending in endings]


async def stall(
    db: Database,
    *,
    expired_for_seconds: float | None = 0,
    dead_workers: Sequence[str] = (),
    proofs: Mapping[str, dict[str, Any]] = MappingProxyType({}),
    at_most: int = 500,
    heard_at: datetime | None = None,
    patience_seconds: float | None = None,
    retries: RetrySettings = BUILT_IN,
) -> list[Row]:
    """Takes back tasks whose lease ran out at least so long ago (none: whatever the lease), or whose worker is dead.
    What is known of a worker's end (`proofs`) is kept with the ends of its attempts.

    With `heard_at`, the time at which Postgres last answered the caller, nothing is taken back once that is older than
    the patience. Returns `task_id, status, worker_id, attempt, traceparent` of each.
    """
    rows = await db.fetch(
        """
        SELECT answer.*, t.attempt, t.traceparent
        FROM stall_tasks($1, $2, $3::text::jsonb, $4, $5, $6, $7) AS answer
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = answer.task_id OFFSET 0) AS t
        """,
        expired_for_seconds,
        [*dead_workers, *proofs],
        as_json(dict(proofs)),
        retries.seconds_after_a_lost_worker(WorkerLost.delays),
        at_most,
        heard_at,
        patience_seconds,
    )
    return counting.stalled(rows)


async def expire(db: Database, *, at_most: int = 500) -> list[Row]:
    """Buries waiting tasks that are older than they may be; returns the `task_id` of each."""
    return counting.expired(await db.fetch("SELECT * FROM expire_tasks($1)", at_most))


async def seconds_to_next_expiry(db: Database) -> float | None:
    """How long until the earliest lease runs out, by Postgres' clock; none when nothing runs."""
    seconds: float | None = await db.fetchval(
        """
        SELECT extract(epoch FROM min(lease_expires_at) - clock_timestamp())::float
        FROM tasks WHERE status = 'running'
        """
    )
    return seconds


async def cancel(db: Database, task_id: UUID) -> Row | None:
    row = await db.fetchrow("SELECT (task).*, ended FROM cancel_task($1)", task_id)
    return row and counting.changed(row)


async def revive(db: Database, task_id: UUID) -> Row | None:
    """A new life for the task and for the dependents that it had buried."""
    while True:
        try:
            row = await db.fetchrow("SELECT (task).*, revived, ended FROM revive_task($1)", task_id)
            return row and counting.changed(row)
        except asyncpg.DeadlockDetectedError:
            # Generation by generation it may come across a claim the other way round; one of the two begins again.
            continue


async def get(db: Database, task_id: UUID) -> Row | None:
    return await db.fetchrow("SELECT * FROM tasks WHERE task_id = $1", task_id)


async def existing(db: Database, task_ids: Sequence[UUID], *, of_user: str | None) -> set[UUID]:
    """Which of these there are, in all or of one user. That never changes: tasks stay, and so does their owner."""
    rows = await db.fetch(
        "SELECT task_id FROM tasks WHERE task_id = ANY ($1) AND ($2::text IS NULL OR user_id = $2)",
        list(task_ids),
        of_user,
    )
    return {row["task_id"] for row in rows}
