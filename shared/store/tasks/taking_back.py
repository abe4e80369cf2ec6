"""Tasks that their workers have lost, and tasks that are too old to start."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import Any
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.errors import WorkerLost
from windlass.shared.metrics import counting
from windlass.shared.retry_delays import BUILT_IN, RetrySettings
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch


class Stalled(Record):
    """A task that was taken back; the dependents that were buried with it have no worker."""

    task_id: UUID
    status: str
    worker_id: str | None
    actor: str
    provider: str
    attempt: int
    traceparent: str | None


class Expired(Record):
    """A task that was too old to start, or one that had to wait for it."""

    task_id: UUID
    actor: str
    provider: str
    is_dependent: bool


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
) -> list[Stalled]:
    """Takes back tasks whose lease ran out at least so long ago (none: whatever the lease), or whose worker is dead.
    What is known of a worker's end (`proofs`) is kept with the ends of its attempts.

    With `heard_at`, the time at which Postgres last answered the caller, nothing is taken back once that is older than
    the patience. Returns `task_id, status, worker_id, attempt, traceparent` of each.
    """
    rows = await fetch(
        db,
        Stalled,
        f"""
        SELECT answer.*, t.attempt, t.traceparent
        FROM {named("stall_tasks")}($1, $2, $3::text::jsonb, $4, $5, $6, $7, $8) AS answer
        CROSS JOIN LATERAL (SELECT * FROM tasks WHERE tasks.task_id = answer.task_id OFFSET 0) AS t
        """,  # noqa: S608 - a name of our own
        expired_for_seconds,
        [*dead_workers, *proofs],
        as_json(dict(proofs)),
        retries.seconds_after_a_lost_worker(WorkerLost.delays),
        at_most,
        heard_at,
        patience_seconds,
        retries.timeout_factor,
    )
    counting.stalled(rows)
    return [row for row in rows if row.worker_id is not None]


async def expire(db: Database, *, at_most: int = 500) -> list[Expired]:
    """Buries waiting tasks that are older than they may be; returns the `task_id` of each."""
    rows = await fetch(db, Expired, f"SELECT * FROM {named('expire_tasks')}($1)", at_most)  # noqa: S608 - a name of our own
    counting.expired(rows)
    return [row for row in rows if not row.is_dependent]
