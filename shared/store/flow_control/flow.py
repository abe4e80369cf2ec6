"""Flow control as operators see and change it: how a provider is set, who holds its slots, what happened to it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.settings import Settings
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.rows import ProviderEventRow, ProviderRow
from windlass.shared.toml_tables import LaneSettings

HOLDERS_SHOWN = 500


@dataclass(frozen=True)
class Rules:
    """When a breaker opens and how long it and a pause last: what the end of an attempt is judged by."""

    breaker_window: int
    breaker_window_seconds: float
    breaker_least_results: int
    breaker_failure_ratio: float
    breaker_open_seconds: float
    longest_pause_seconds: float

    @classmethod
    def of(cls, settings: Settings) -> Self:
        return cls(**{name: getattr(settings, name) for name in cls.__dataclass_fields__})


class ProviderOverview(ProviderRow):
    """A provider with its slots, its breaker's window and its workers."""

    actors: list[str]
    """Those that it has queues of."""
    rate_left: int | None
    rate_free_at: datetime | None
    breaker_ends_at: datetime | None
    results: int
    failures: int
    held: int
    waiting_retries: int
    workers: int


class Holder(Record):
    """Who holds a slot; no worker while only a job is open."""

    provider: str
    task_id: UUID
    worker_id: str | None
    since: datetime


async def change(
    db: Database, provider: str, changes: dict[str, Any], *, by: str | None = None, why: str | None = None
) -> bool:
    """Sets what is named over the configuration, null back to it; false when there is no such provider. Who did it, and
    the reason that was given, stand in its story."""
    operator = {name: said for name, said in (("by", by), ("why", why)) if said is not None}
    changed: bool = await db.fetchval(
        f"SELECT {named('change_provider')}($1, $2::text::jsonb)", provider, as_json({**changes, "operator": operator})
    )
    return changed


async def overview(
    db: Database, rules: Rules, lanes: LaneSettings, *, heard_within_seconds: float, only: str | None = None
) -> list[ProviderOverview]:
    """Every provider with its settings, its slots, its breaker's window and its workers."""
    return await fetch(
        db,
        ProviderOverview,
        f"""
        SELECT p.*, nullif(p.breaker_until, 'infinity') AS breaker_ends_at,
               ARRAY(SELECT q.actor::text FROM queues q WHERE q.provider = p.name ORDER BY q.actor <> p.actor, q.actor)
               AS actors,
               {named("rate_left")}(p, now()) AS rate_left, {named("rate_free_at")}(p, now()) AS rate_free_at,
               recent.results, recent.failures,
               {named("held_slots")}(p.name) AS held,
               {named("due_since")}(its.queues, 'retry', now(), $4::int) AS waiting_retries,
               (SELECT count(*) FROM workers w WHERE w.state = 'active' AND w.queues && its.queues
                   AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $2)) AS workers
        FROM providers p CROSS JOIN LATERAL {named("window_of")}(p, $1::text::jsonb) AS recent
        CROSS JOIN LATERAL (SELECT ARRAY(SELECT q.queue::text FROM queues q WHERE q.provider = p.name) AS queues) AS its
        WHERE $3::text IS NULL OR p.name = $3
        ORDER BY p.name
        """,  # noqa: S608 - a name of our own
        as_json(rules),
        heard_within_seconds,
        only,
        lanes.very_many_retries + 1,
    )


async def holders(db: Database, provider: str | None = None) -> list[Holder]:
    """Who holds slots, the longest first: `provider, task_id, worker_id, since`; no worker while only a job is open."""
    return await fetch(
        db,
        Holder,
        """
        SELECT held.* FROM providers p CROSS JOIN LATERAL (
            SELECT t.provider, t.task_id, t.worker_id, t.started_at AS since
            FROM tasks t WHERE t.provider = p.name AND t.status = 'running'
            UNION ALL
            SELECT t.provider, t.task_id, NULL, t.started_at
            FROM tasks t WHERE t.provider = p.name AND t.job_open AND t.status <> 'running'
        ) AS held
        WHERE $1::text IS NULL OR p.name = $1
        ORDER BY held.since LIMIT $2
        """,
        provider,
        HOLDERS_SHOWN,
    )


async def events(db: Database, provider: str, *, before: int | None, limit: int) -> list[ProviderEventRow]:
    """What happened to a provider, newest first."""
    return await fetch(
        db,
        ProviderEventRow,
        """
        SELECT event_id, at, type, reason, data FROM provider_events
        WHERE provider = $1 AND ($2::bigint IS NULL OR event_id < $2) ORDER BY event_id DESC LIMIT $3
        """,
        provider,
        before,
        limit,
    )


async def open_breakers(db: Database) -> list[str]:
    """The names of the providers whose breaker is not closed."""
    rows = await fetch(db, ProviderRow, "SELECT name FROM providers WHERE breaker_state <> 'closed' ORDER BY name")
    return [row.name for row in rows]


async def judge_windows(db: Database, rules: Rules) -> None:
    """Opens the breakers whose windows say so: results that came at the same moment may have missed each other."""
    await db.execute(f"SELECT {named('judge_windows')}($1::text::jsonb)", as_json(rules))


async def forget_results(db: Database, rules: Rules, *, at_most: int) -> int:
    """Deletes results that nothing looks at any more; returns how many."""
    tag: str = await db.execute(
        """
        -- Materialized: asked again for each row, as a plan may have it, the limit would be none.
        WITH old AS MATERIALIZED (
            SELECT each.result_id FROM providers p CROSS JOIN LATERAL (
                SELECT r.result_id FROM provider_results r
                WHERE r.provider = p.name AND r.at < now() - make_interval(secs => $1)
                LIMIT $2 FOR UPDATE SKIP LOCKED
            ) AS each
        )
        DELETE FROM provider_results r USING old WHERE r.result_id = old.result_id
        """,
        max(rules.breaker_window_seconds, rules.longest_pause_seconds),
        at_most,
    )
    return int(tag.rpartition(" ")[2])
