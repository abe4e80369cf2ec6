"""Who runs tasks: a worker registers, renews its leases with every heartbeat, and says good-bye."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.metrics.services import WORKERS_LOST
from windlass.shared.store.functions import named
from windlass.shared.store.operating import registry
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import WorkerRow

SHOWN = """
    w.worker_id, w.hostname, w.pid, w.queues, w.capacity, w.state, w.started_at, w.heartbeat_at, w.stop_reason,
    w.actor_versions, w.broken, w.drain_requested_at,
    (SELECT count(*) FROM tasks t WHERE t.status = 'running' AND t.worker_id = w.worker_id) AS running
"""


class Renewal(Record):
    """What a heartbeat found of a task that its worker holds."""

    claim_token: UUID
    owned: bool
    skipped: bool
    cancel_requested: bool


class Unserved(Record):
    """A queue that nobody serves."""

    queue: str


class BrokenQueue(Record):
    """A queue that a worker was to serve and cannot, with the sentence that says why."""

    queue: str
    reason: str


class BusyWorker(WorkerRow):
    """A worker, and how many tasks it runs."""

    running: int


async def register(
    db: Database,
    worker_id: str,
    *,
    hostname: str,
    pid: int,
    queues: Sequence[str],
    capacity: int,
    async_queues: Sequence[str] = (),
    async_capacity: int = 0,
    actor_versions: Mapping[str, str] | None = None,
    broken: Mapping[str, str] | None = None,
    whereabouts: Mapping[str, Any] | None = None,
) -> None:
    """`async_capacity` of its places serve `async_queues`, whose attempts hold no thread, and the rest the others.
    `broken` are the queues that it was to serve and cannot, with the sentence that says why; by its `whereabouts` who
    starts in its place can prove its death."""
    await db.execute(
        """
        INSERT INTO workers (worker_id, hostname, pid, queues, capacity, actor_versions, broken, whereabouts,
                             async_queues, async_capacity)
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        ON CONFLICT (worker_id) DO UPDATE SET state = 'active', heartbeat_at = clock_timestamp()
        """,
        worker_id,
        hostname,
        pid,
        list(queues),
        capacity,
        dict(actor_versions or {}),
        dict(broken or {}),
        dict(whereabouts or {}),
        list(async_queues),
        async_capacity,
    )
    await db.execute(f"SELECT {named('wake_dispatcher')}(), pg_notify('{registry.CHANNEL}', '')")


async def renew(db: Database, worker_id: str, held: dict[UUID, UUID], lease_seconds: float) -> list[Renewal]:
    """One heartbeat; returns `claim_token, owned, skipped, cancel_requested` for each task held. One whose row somebody
    else has locked is skipped: neither renewed nor lost."""
    return await fetch(
        db,
        Renewal,
        f"SELECT * FROM {named('renew_leases')}($1, $2, $3, $4)",  # noqa: S608 - a name of our own
        worker_id,
        list(held.values()),
        list(held),
        lease_seconds,
    )


def hung_reason(task_id: UUID) -> str:
    """Why a worker is condemned whose attempt at this task does not stop when its time is over: `stall_tasks` knows it
    by these words, and the task has timed out."""
    return f"task {task_id} ignores its deadline"


def stuck_reason(task_id: UUID) -> str:
    """Why a worker is condemned where one attempt lets no other go on; `stall_tasks` knows it by these words, too."""
    return f"task {task_id} holds up its event loop"


async def leave(db: Database, worker_id: str, *, state: str, reason: str) -> None:
    """Marks a worker as `stopping` (it takes nothing new) or `stopped`."""
    await db.execute(
        "UPDATE workers SET state = $2, stop_reason = $3, heartbeat_at = clock_timestamp() WHERE worker_id = $1",
        worker_id,
        state,
        reason,
    )


async def lose_silent(db: Database, *, silent_for_seconds: float) -> list[WorkerRow]:
    """Marks as `lost` the workers that were not heard of for so long; returns their `worker_id`."""
    rows = await fetch(
        db,
        WorkerRow,
        """
        UPDATE workers w SET state = 'lost', stop_reason = 'no heartbeat'
        FROM (
            SELECT worker_id FROM workers
            WHERE state IN ('active', 'stopping') AND heartbeat_at < clock_timestamp() - make_interval(secs => $1)
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS silent
        WHERE w.worker_id = silent.worker_id RETURNING w.worker_id
        """,
        silent_for_seconds,
    )
    WORKERS_LOST.inc(len(rows))
    return rows


async def count_live(db: Database, *, heard_within_seconds: float) -> int:
    count: int = await db.fetchval(
        """
        SELECT count(*) FROM workers
        WHERE state = 'active' AND heartbeat_at > clock_timestamp() - make_interval(secs => $1)
        """,
        heard_within_seconds,
    )
    return count


async def unserved_queues(db: Database, *, for_seconds: float) -> list[str]:
    """Queues whose tasks could have started for so long, and that no worker has served for as long.

    A pool that is scaled from none, or replaced, takes a while: its queue is not unserved meanwhile, nor one whose
    provider was held back and may go on only since a moment ago.
    """
    rows = await fetch(
        db,
        Unserved,
        f"""
        SELECT q.queue FROM queues q JOIN providers p ON p.name = q.provider
        CROSS JOIN LATERAL {named("oldest_due")}(p.name, q.queue) AS oldest
        WHERE oldest IS NOT NULL AND NOT p.paused AND coalesce(p.limit_override, p.configured_limit) IS DISTINCT FROM 0
          AND NOT EXISTS (
              SELECT 1 FROM workers w
              WHERE q.queue = ANY (w.queues)
                AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $1))
          AND greatest(
              oldest, p.paused_until, p.breaker_until,
              (SELECT e.at FROM provider_events e WHERE e.provider = p.name ORDER BY e.event_id DESC LIMIT 1)
          ) < now() - make_interval(secs => $1)
        ORDER BY q.queue
        """,  # noqa: S608 - a name of our own
        for_seconds,
    )
    return [row.queue for row in rows]


async def broken_queues(db: Database, *, heard_within_seconds: float) -> list[BrokenQueue]:
    """Of the workers that live: each queue once, however many cannot serve it."""
    return await fetch(
        db,
        BrokenQueue,
        """
        SELECT DISTINCT ON (broken.key) broken.key AS queue, broken.value AS reason
        FROM workers w CROSS JOIN LATERAL jsonb_each_text(w.broken) AS broken
        WHERE w.state = 'active' AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $1)
        ORDER BY broken.key, w.started_at DESC
        """,
        heard_within_seconds,
    )


async def newest(db: Database, *, limit: int = 500) -> list[BusyWorker]:
    """Workers with the number of tasks that each one runs: the living first, then the latest."""
    return await fetch(
        db,
        BusyWorker,
        f"""
        SELECT {SHOWN} FROM workers w ORDER BY w.state IN ('active', 'stopping') DESC, w.started_at DESC LIMIT $1
        """,  # noqa: S608 - the columns above
        limit,
    )


async def get(db: Database, worker_id: str) -> BusyWorker | None:
    return await fetchrow(db, BusyWorker, f"SELECT {SHOWN} FROM workers w WHERE w.worker_id = $1", worker_id)  # noqa: S608


async def others_at(db: Database, hostname: str, worker_id: str) -> list[WorkerRow]:
    """`worker_id` and `whereabouts` of those that have not gone by what the rows say, at this name but for one."""
    return await fetch(
        db,
        WorkerRow,
        """
        SELECT w.worker_id, w.whereabouts FROM workers w
        WHERE w.state IN ('active', 'stopping') AND w.hostname = $1 AND w.worker_id <> $2
        ORDER BY w.worker_id
        """,
        hostname,
        worker_id,
    )


async def mark_lost(db: Database, worker_ids: Sequence[str], *, reason: str) -> None:
    """Their guardian has seen them die, or their successor has proven it."""
    rows = await db.fetch(
        """
        UPDATE workers w SET state = 'lost', stop_reason = coalesce(w.stop_reason, $2)
        FROM (
            SELECT worker_id FROM workers WHERE worker_id = ANY ($1) AND state IN ('active', 'stopping')
            ORDER BY worker_id FOR NO KEY UPDATE
        ) AS dead
        WHERE w.worker_id = dead.worker_id RETURNING w.worker_id
        """,
        list(worker_ids),
        reason,
    )
    WORKERS_LOST.inc(len(rows))
