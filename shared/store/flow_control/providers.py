"""Providers as rows: what is configured, what may start now, and the doorbells that are out for them.

Due rows are compared with `now()`, which is this statement's own time: unlike `clock_timestamp()` an index can use it.
"""

from collections.abc import Collection, Sequence
from uuid import UUID

from windlass.shared.admission import Admission, ProviderView
from windlass.shared.db import Database
from windlass.shared.settings import Settings, queue_name
from windlass.shared.sql_fragments import due
from windlass.shared.store.flow_control import keys
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch
from windlass.shared.store.rows import TaskRow
from windlass.shared.store.tasks import TRACEPARENT
from windlass.shared.toml_tables import LaneSettings

DUE_COUNTED = 256
"""Backlogs are counted only as far as a decision can depend on it, so that looking costs the same at any length."""

CHECKS_A_PLACE_IS_KEPT = 3
"""For a task that must run alone, until its doorbell was checked so often: about 14 seconds, in which the process that
it needs can start. Should none come, a provider with few slots must not wait for it."""


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
            configured_rate = excluded.configured_rate, dispatch_version = providers.dispatch_version + 1
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

    Where somebody serves some of its queues, only these are looked at: what waits in the others, or has been rung for
    there, takes no place from them.
    """
    rows = await db.fetch(
        f"""
        WITH live AS MATERIALIZED (
            SELECT w.queues, w.capacity FROM workers w
            WHERE w.state = 'active' AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $1)
        )
        SELECT p.name, p.dispatch_version, p.lane_credit, coalesce(p.limit_override, p.configured_limit) AS limit,
               {named("held_slots")}(p.name) AS held, rung.others AS rung, rung.resumes AS resumes_rung,
               its.queues,
               (SELECT coalesce(sum(live.capacity), 0) FROM live WHERE live.queues && its.queues) AS capacity,
               due.fresh AS fresh_due, due.retry AS retry_due, open.resumes AS resumes_due, now() AS at,
               p.paused, p.paused_until, p.breaker_state, nullif(p.breaker_until, 'infinity') AS breaker_until,
               {named("rate_in_force")}(p) AS rate, {named("rate_left")}(p, now()) AS rate_left,
               {named("rate_free_at")}(p, now()) AS rate_free_at,
               {named("has_trial_running")}(p) AS trial_running
        FROM providers p
        CROSS JOIN LATERAL (
            SELECT coalesce(array_agg(q.queue) FILTER (WHERE q.is_served), array_agg(q.queue), '{{}}') AS queues FROM (
                SELECT q.queue::text, EXISTS (SELECT FROM live WHERE q.queue = ANY (live.queues)) AS is_served
                FROM queues q WHERE q.provider = p.name ORDER BY q.queue
            ) AS q
        ) AS its
        CROSS JOIN LATERAL {named("due_counts")}(its.queues, $2::int) AS due
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE NOT t.job_open AND NOT {named("runs_alone")}(t.suspicion))
                   -- Who must run alone waits for a process of its own: one place is kept for all of them, for a while.
                   + least(1, count(*) FILTER (
                       WHERE NOT t.job_open AND {named("runs_alone")}(t.suspicion)
                         AND t.doorbell_count <= $4)) AS others,
                   count(*) FILTER (WHERE t.job_open) AS resumes
            FROM tasks t
            WHERE t.provider = p.name AND t.status IN ('queued', 'retrying') AND t.doorbell_token IS NOT NULL
              AND t.queue = ANY (its.queues)
        ) AS rung
        CROSS JOIN LATERAL (
            -- OFFSET 0 keeps the other conditions out, so that only the open jobs are read and not all that is due.
            SELECT count(*) AS resumes
            FROM (SELECT * FROM tasks WHERE tasks.provider = p.name AND tasks.job_open OFFSET 0) AS t
            WHERE t.doorbell_token IS NULL AND t.queue = ANY (its.queues) AND {due("now()")}
        ) AS open
        WHERE ($3::text[] IS NULL OR p.name = ANY ($3)) AND ($3 IS NOT NULL OR due.fresh + due.retry + open.resumes > 0)
        ORDER BY p.name
        """,  # noqa: S608 - the states' own words
        heard_within_seconds,
        DUE_COUNTED,
        _names(only),
        CHECKS_A_PLACE_IS_KEPT,
    )
    return [ProviderView(**row) for row in rows]


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
              AND t.status IN ('queued', 'retrying') AND t.doorbell_token IS NULL AND t.available_at <= now()
            ORDER BY t.available_at LIMIT $1
        ) AS waiting
        WHERE q.queue = ANY ($2)
        GROUP BY q.provider
        """,
        lanes.very_many_retries + 1,
        list(queues),
    )
    return {row.name: row.retries for row in rows}


async def reserve(
    db: Database, view: ProviderView, admission: Admission, token: UUID, *, traced: bool = False
) -> list[TaskRow]:
    """Marks so many rows of each lane as about to be rung for; returns `task_id, queue, actor` in starting order, for
    who asks with their `traceparent`.

    None come back when the provider was changed since it was looked at: look again.
    """
    wanted = f"*, {TRACEPARENT}" if traced else "*"
    return await fetch(
        db,
        TaskRow,
        f"SELECT {wanted} FROM {named('reserve_tasks')}($1, $2, $3, $4, $5, $6, $7, $8, $9) AS answer",  # noqa: S608 - both are ours
        view.name,
        view.dispatch_version,
        admission.resumes,
        admission.fresh,
        admission.retry,
        admission.credit,
        admission.trial,
        token,
        list(view.queues),
    )


async def give_back(db: Database, token: UUID, task_ids: Sequence[UUID]) -> None:
    """The doorbells could not be rung: the rows are due again at once."""
    await db.execute(
        """
        UPDATE tasks t SET doorbell_token = NULL, doorbell_at = NULL, doorbell_count = 0
        FROM (SELECT task_id FROM tasks WHERE task_id = ANY ($2) ORDER BY task_id FOR NO KEY UPDATE) AS rung
        WHERE t.task_id = rung.task_id AND t.doorbell_token = $1
        """,
        token,
        list(task_ids),
    )


async def check_doorbells(db: Database, *, first_after_seconds: float, at_most_seconds: float) -> list[TaskRow]:
    """Rows that were rung for, still wait and are due to be checked again: `task_id, queue, actor, doorbell_count,
    traceparent`.

    Each check doubles the time to the next one.
    """
    return await fetch(
        db,
        TaskRow,
        """
        WITH rung AS MATERIALIZED (
            -- All that were rung for, provider by provider as their index has them: with a limit, or for all at once,
            -- the planner may walk through all that wait.
            SELECT t.task_id, t.doorbell_at, t.doorbell_count FROM providers AS p
            CROSS JOIN LATERAL (
                SELECT * FROM tasks
                WHERE tasks.provider = p.name AND status IN ('queued', 'retrying') AND doorbell_token IS NOT NULL
                OFFSET 0
            ) AS t
        )
        UPDATE tasks t SET doorbell_at = clock_timestamp(), doorbell_count = t.doorbell_count + 1
        FROM (
            SELECT task_id FROM tasks
            WHERE task_id = ANY (ARRAY(
                SELECT task_id FROM rung
                WHERE doorbell_at < clock_timestamp()
                                    - make_interval(secs => least($1 * 2 ^ least(doorbell_count - 1, 10), $2))
                ORDER BY task_id LIMIT 500))
              AND status IN ('queued', 'retrying') AND doorbell_token IS NOT NULL
              AND doorbell_at < clock_timestamp()
                                - make_interval(secs => least($1 * 2 ^ least(doorbell_count - 1, 10), $2))
            ORDER BY task_id FOR NO KEY UPDATE SKIP LOCKED
        ) AS silent
        WHERE t.task_id = silent.task_id
        RETURNING t.task_id, t.queue, t.actor, t.doorbell_count, t.traceparent
        """,
        first_after_seconds,
        at_most_seconds,
    )


async def seconds_to_next_look(
    db: Database, *, first_check_seconds: float, at_most_seconds: float, only: Collection[str] | None = None
) -> float | None:
    """How long, by Postgres' clock, until there is something to do at any provider or at one of these: a task becomes
    due, a pause or a breaker's time is over, a doorbell is to be checked, or a place becomes free in a rate that
    something waits for."""

    def wanted(name: str) -> str:
        return f"($3::text[] IS NULL OR {name} = ANY ($3))"

    seconds: float | None = await db.fetchval(
        f"""
        SELECT extract(epoch FROM least(
            (SELECT min(next.available_at)
             FROM queues q
             CROSS JOIN (VALUES ('fresh'), ('retry')) AS lanes(lane)
             CROSS JOIN generate_series(0, 9) AS level(priority)
             CROSS JOIN LATERAL (
                 SELECT t.available_at FROM tasks t
                 WHERE t.queue = q.queue AND t.lane = lanes.lane AND t.priority = level.priority
                   AND t.status IN ('queued', 'retrying') AND t.doorbell_token IS NULL AND t.available_at > now()
                   AND t.available_at < 'infinity'
                 ORDER BY t.available_at LIMIT 1
             ) AS next WHERE {wanted("q.provider")}),
            (SELECT min(rung.checked_at) FROM providers p
             -- Provider by provider, as their index has them, as in `check_doorbells`.
             CROSS JOIN LATERAL (
                 SELECT min(t.doorbell_at + make_interval(secs => least($1 * 2 ^ least(t.doorbell_count - 1, 10), $2)))
                        AS checked_at
                 FROM tasks t
                 WHERE t.provider = p.name AND t.status IN ('queued', 'retrying') AND t.doorbell_token IS NOT NULL
             ) AS rung WHERE {wanted("p.name")}),
            (SELECT min(bar.until) FROM providers p CROSS JOIN LATERAL (VALUES (p.paused_until), (p.breaker_until))
             AS bar(until) WHERE bar.until > now() AND bar.until < 'infinity' AND {wanted("p.name")}),
            -- A place that is left may be taken by one that was rung for, and becomes free again after that.
            (SELECT min({named("rate_free_at")}(p, now())) FROM providers p
             WHERE {wanted("p.name")}
             AND {named("rate_in_force")}(p) IS NOT NULL AND {named("rate_left")}(p, now()) <= (
                 SELECT count(*) FROM tasks t
                 WHERE t.provider = p.name AND t.status IN ('queued', 'retrying') AND t.doorbell_token IS NOT NULL
                   AND NOT t.job_open)
             AND (SELECT due.fresh + due.retry > 0 FROM {named("due_counts")}(
                 ARRAY(SELECT q.queue::text FROM queues q WHERE q.provider = p.name), 1) AS due))
        ) - clock_timestamp())::float
        """,  # noqa: S608 - names of our own
        first_check_seconds,
        at_most_seconds,
        _names(only),
    )
    return seconds


def _names(only: Collection[str] | None) -> list[str] | None:
    return None if only is None else sorted(only)
