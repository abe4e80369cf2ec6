"""Providers as rows: what is configured, and what may start now.

Due rows are compared with `now()`, which is this statement's own time: unlike `clock_timestamp()` an index can use it.
"""

from collections.abc import Collection, Mapping, Sequence

from windlass.shared.admission import ProviderView
from windlass.shared.db import Database
from windlass.shared.reasons import Reason
from windlass.shared.settings import Settings, queue_name
from windlass.shared.sql_fragments import due
from windlass.shared.store.flow_control import keys
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch
from windlass.shared.toml_tables import LaneSettings

DUE_COUNTED = 512
"""Backlogs are counted only as far as a decision can depend on it, so that looking costs the same at any length."""


class Backlog(Record):
    """How many retries are due at a provider."""

    name: str
    retries: int


async def configure(db: Database, settings: Settings) -> None:
    """Writes the configured providers, their queues and the limits of concurrency keys; what an operator has set over
    them stays, and so does a queue that is no longer configured: its tasks may still wait."""
    await db.executemany(
        """
        INSERT INTO providers (name, actor, configured_limit, configured_rate) VALUES ($1, $2, $3, $4)
        ON CONFLICT (name) DO UPDATE SET
            actor = excluded.actor, configured_limit = excluded.configured_limit,
            configured_rate = excluded.configured_rate
        WHERE (providers.actor, providers.configured_limit, providers.configured_rate)
              IS DISTINCT FROM (excluded.actor, excluded.configured_limit, excluded.configured_rate)
        """,
        [
            (name, provider.actors[0], provider.limit, provider.rate and provider.rate.model_dump())
            for name, provider in sorted(settings.providers.items())
        ],
    )
    await db.executemany(
        "INSERT INTO queues (queue, provider, actor) VALUES ($1, $2, $3) ON CONFLICT (queue) DO NOTHING",
        sorted(
            (queue_name(actor, name), name, actor)
            for name, provider in settings.providers.items()
            for actor in provider.actors
        ),
    )
    await keys.configure(db, settings)


async def look(db: Database, *, heard_within_seconds: float, only: Collection[str] | None = None) -> list[ProviderView]:
    """Every provider that has something due, or just those that are asked for, whatever they have.

    Where somebody serves some of its queues, only these are looked at: what waits in the others takes no place from
    them.
    """
    rows = await db.fetch(
        f"""
        WITH live AS MATERIALIZED (
            SELECT place.queues, place.capacity, greatest(0, place.capacity - place.taken) AS idle
            FROM workers w CROSS JOIN LATERAL {named("places_of")}(w) AS place
            WHERE w.state = 'active' AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $1)
        )
        SELECT p.name, coalesce(p.limit_override, p.configured_limit) AS limit,
               {named("held_slots")}(p.name) AS held, its.queues, serving.capacity, serving.idle AS idle_places,
               due.fresh AS fresh_due, due.retry AS retry_due, due.resumes AS resumes_due, now() AS at,
               due.by_queue AS due_by_queue, due.resumes_by_queue, due.idle_workers,
               shared.fresh AS fresh_starts, shared.retry AS retry_starts, may.resumes,
               nullif({named("bar_of")}(p, now()), 'on-trial') AS bar, {named("is_on_trial")}(p) AS on_trial,
               p.paused_until, nullif(p.breaker_until, 'infinity') AS breaker_until,
               {named("rate_in_force")}(p) AS rate, {named("rate_left")}(p, now()) AS rate_left,
               {named("rate_free_at")}(p, now()) AS rate_free_at,
               {named("has_trial_running")}(p) AS trial_running, p.retry_share,
               {named("next_moment")}(p, its.queues) AS next_at
        FROM providers p
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(q.queue) FILTER (WHERE q.is_served), array_agg(q.queue), '{{}}') AS queues FROM (
                SELECT q.queue::text, EXISTS (SELECT FROM live WHERE q.queue = ANY (live.queues)) AS is_served
                FROM queues q WHERE q.provider = p.name ORDER BY q.queue
            ) AS q
        ) AS its
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(live.capacity), 0) AS capacity, coalesce(sum(live.idle), 0)::int AS idle
            FROM live WHERE live.queues && its.queues
        ) AS serving
        CROSS JOIN LATERAL (
            SELECT coalesce(sum(counted.fresh), 0)::bigint AS fresh, coalesce(sum(counted.retry), 0)::bigint AS retry,
                   coalesce(sum(open.resumes), 0)::bigint AS resumes,
                   coalesce(array_agg(counted.fresh + counted.retry ORDER BY its_own.place), '{{}}') AS by_queue,
                   coalesce(array_agg(open.resumes ORDER BY its_own.place), '{{}}') AS resumes_by_queue,
                   coalesce(array_agg(
                       (SELECT count(*) FROM live WHERE its_own.queue = ANY (live.queues) AND live.idle > 0)
                       ORDER BY its_own.place), '{{}}') AS idle_workers
            FROM unnest(its.queues) WITH ORDINALITY AS its_own(queue, place)
            CROSS JOIN LATERAL {named("due_counts")}(
                ARRAY[its_own.queue], greatest($2, 2 * serving.capacity)::int) AS counted
            CROSS JOIN LATERAL (
                -- OFFSET 0 keeps the other conditions out, so that only the open jobs are read and not all that is due.
                SELECT count(*) AS resumes
                FROM (SELECT * FROM tasks WHERE tasks.provider = p.name AND tasks.job_open OFFSET 0) AS t
                WHERE t.queue = its_own.queue AND {due("now()")}
            ) AS open
        ) AS due
        CROSS JOIN LATERAL {named("startable")}(p, due.fresh + due.retry, due.resumes, now()) AS may
        CROSS JOIN LATERAL {named("share_between_lanes")}(
            may.starts::int, due.fresh::int, due.retry::int,
            CASE WHEN {named("is_on_trial")}(p) THEN 0 ELSE p.retry_share END, p.lane_credit) AS shared
        WHERE ($3::text[] IS NULL OR p.name = ANY ($3)) AND ($3 IS NOT NULL OR due.fresh + due.retry + due.resumes > 0)
        ORDER BY p.name
        """,  # noqa: S608 - the states' own words
        heard_within_seconds,
        DUE_COUNTED,
        _names(only),
    )
    return [ProviderView(**{**row, "bar": row["bar"] and Reason(row["bar"])}) for row in rows]


async def waiting_retries(db: Database, lanes: LaneSettings, queues: Sequence[str]) -> dict[str, int]:
    """How many retries are due in these queues, by their providers, as far as it makes a difference to the lanes."""
    rows = await fetch(
        db,
        Backlog,
        """
        SELECT q.provider AS name, count(waiting.*) AS retries
        FROM queues q CROSS JOIN generate_series(0, 9) AS level(priority)
        CROSS JOIN LATERAL (
            SELECT 1 FROM tasks t
            WHERE t.queue = q.queue AND t.lane = 'retry' AND t.priority = level.priority
              -- Of any age: the index alone can answer, which does not know when they expire.
              AND t.status IN ('queued', 'retrying') AND t.available_at <= now()
            ORDER BY t.available_at LIMIT $1
        ) AS waiting
        WHERE q.queue = ANY ($2)
        GROUP BY q.provider
        """,
        lanes.very_many_retries + 1,
        list(queues),
    )
    return {row.name: row.retries for row in rows}


async def share_between_lanes(db: Database, shares: Mapping[str, int]) -> None:
    """Writes what part of the starts goes to retries, by provider: what claims decide by."""
    await db.executemany("UPDATE providers SET retry_share = $2 WHERE name = $1", sorted(shares.items()))


async def seconds_to_next_look(db: Database) -> float | None:
    """How long, by Postgres' clock, until there is something to do at any provider that could not be done before."""
    seconds: float | None = await db.fetchval(
        f"""
        SELECT extract(epoch FROM min({named("next_moment")}(
            p, ARRAY(SELECT q.queue::text FROM queues q WHERE q.provider = p.name))) - clock_timestamp())::float
        FROM providers p
        """  # noqa: S608 - a name of our own
    )
    return seconds


def _names(only: Collection[str] | None) -> list[str] | None:
    return None if only is None else sorted(only)
