"""Providers as rows: what is configured, what may start now, and the doorbells that are out for them.

Due rows are compared with `now()`, which is this statement's own time: unlike `clock_timestamp()` an index can use it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from shared.db import Database, Row
from shared.settings import Settings

FRESH_COUNTED = 256
RETRIES_COUNTED = 5001
"""Backlogs are counted only as far as a decision can depend on it, so that looking costs the same at any length."""


@dataclass(frozen=True)
class ProviderView:
    """What the rows say about one provider at one moment: all that is needed to decide how much may start."""

    name: str
    dispatch_version: int
    lane_credit: int
    limit: int | None
    held: int
    rung: int
    capacity: int
    fresh_due: int
    retry_due: int


async def configure(db: Database, settings: Settings) -> None:
    """Writes the configured providers; what an operator has set over them stays."""
    await db.executemany(
        """
        INSERT INTO providers (name, actor, configured_limit) VALUES ($1, $2, $3)
        ON CONFLICT (name) DO UPDATE SET
            actor = excluded.actor, configured_limit = excluded.configured_limit,
            dispatch_version = providers.dispatch_version + 1
        WHERE (providers.actor, providers.configured_limit) IS DISTINCT FROM (excluded.actor, excluded.configured_limit)
        """,
        [(name, provider.actor, provider.limit) for name, provider in sorted(settings.providers.items())],
    )


async def look(db: Database, *, heard_within_seconds: float) -> list[ProviderView]:
    """Every provider that has something due."""
    rows = await db.fetch(
        """
        SELECT p.name, p.dispatch_version, p.lane_credit, coalesce(p.limit_override, p.configured_limit) AS limit,
               (SELECT count(*) FROM tasks t WHERE t.provider = p.name AND t.status = 'running') AS held,
               (SELECT count(*) FROM tasks t WHERE t.provider = p.name AND t.status IN ('queued', 'retrying')
                   AND t.doorbell_token IS NOT NULL) AS rung,
               (SELECT coalesce(sum(w.capacity), 0) FROM workers w WHERE w.state = 'active'
                   AND p.actor || '.' || p.name = ANY (w.queues)
                   AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $1)) AS capacity,
               due.fresh AS fresh_due, due.retry AS retry_due
        FROM providers p CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE waiting.lane = 'fresh') AS fresh,
                   count(*) FILTER (WHERE waiting.lane = 'retry') AS retry
            FROM (VALUES ('fresh', $2::int), ('retry', $3::int)) AS lanes(lane, counted)
            CROSS JOIN generate_series(0, 9) AS level(priority)
            CROSS JOIN LATERAL (
                SELECT t.lane FROM tasks t
                WHERE t.provider = p.name AND t.lane = lanes.lane AND t.priority = level.priority
                  AND t.status IN ('queued', 'retrying') AND t.doorbell_token IS NULL
                  AND t.available_at <= now()
                  AND (t.expires_at IS NULL OR t.expires_at > now())
                LIMIT lanes.counted
            ) AS waiting
        ) AS due
        WHERE due.fresh + due.retry > 0
        ORDER BY p.name
        """,
        heard_within_seconds,
        FRESH_COUNTED,
        RETRIES_COUNTED,
    )
    return [ProviderView(**row) for row in rows]


async def reserve(db: Database, view: ProviderView, *, fresh: int, retry: int, credit: int, token: UUID) -> list[Row]:
    """Marks so many rows of each lane as about to be rung for; returns `task_id, queue, actor` in starting order.

    None come back when the provider was changed since it was looked at: look again.
    """
    return await db.fetch(
        "SELECT * FROM reserve_tasks($1, $2, $3, $4, $5, $6)",
        view.name,
        view.dispatch_version,
        fresh,
        retry,
        credit,
        token,
    )


async def give_back(db: Database, token: UUID, task_ids: Sequence[UUID]) -> None:
    """The doorbells could not be rung: the rows are due again at once."""
    await db.execute(
        """
        UPDATE tasks SET doorbell_token = NULL, doorbell_at = NULL, doorbell_count = 0
        WHERE task_id = ANY ($2) AND doorbell_token = $1
        """,
        token,
        list(task_ids),
    )


async def check_doorbells(db: Database, *, first_after_seconds: float, at_most_seconds: float) -> list[Row]:
    """Rows that were rung for, still wait and are due to be checked again: `task_id, queue, actor, doorbell_count`.

    Each check doubles the time to the next one.
    """
    return await db.fetch(
        """
        UPDATE tasks t SET doorbell_at = clock_timestamp(), doorbell_count = t.doorbell_count + 1
        FROM (
            SELECT task_id FROM tasks
            WHERE status IN ('queued', 'retrying') AND doorbell_token IS NOT NULL
              AND doorbell_at < clock_timestamp()
                                - make_interval(secs => least($1 * 2 ^ least(doorbell_count - 1, 10), $2))
            ORDER BY task_id LIMIT 500 FOR NO KEY UPDATE SKIP LOCKED
        ) AS silent
        WHERE t.task_id = silent.task_id
        RETURNING t.task_id, t.queue, t.actor, t.doorbell_count
        """,
        first_after_seconds,
        at_most_seconds,
    )


async def seconds_to_next_look(db: Database, *, first_check_seconds: float, at_most_seconds: float) -> float | None:
    """How long, by Postgres' clock, until a scheduled task becomes due or a doorbell is to be checked first."""
    seconds: float | None = await db.fetchval(
        """
        SELECT extract(epoch FROM least(
            (SELECT min(next.available_at)
             FROM providers p
             CROSS JOIN (VALUES ('fresh'), ('retry')) AS lanes(lane)
             CROSS JOIN generate_series(0, 9) AS level(priority)
             CROSS JOIN LATERAL (
                 SELECT t.available_at FROM tasks t
                 WHERE t.provider = p.name AND t.lane = lanes.lane AND t.priority = level.priority
                   AND t.status IN ('queued', 'retrying') AND t.doorbell_token IS NULL AND t.available_at > now()
                 ORDER BY t.available_at LIMIT 1
             ) AS next),
            (SELECT min(t.doorbell_at + make_interval(secs => least($1 * 2 ^ least(t.doorbell_count - 1, 10), $2)))
             FROM tasks t WHERE t.status IN ('queued', 'retrying') AND t.doorbell_token IS NOT NULL)
        ) - clock_timestamp())::float
        """,
        first_check_seconds,
        at_most_seconds,
    )
    return seconds
