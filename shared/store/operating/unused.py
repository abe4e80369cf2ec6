"""Actors, providers and queues that nothing names any more: views leave them out after a day without use, and an admin
may have them forgotten. Their tasks stay."""

from collections.abc import Collection

from windlass.shared.db import Database
from windlass.shared.settings import OWN, Settings, queue_name
from windlass.shared.sql_fragments import words
from windlass.shared.states import LIVE, WAITING
from windlass.shared.store.operating.registry import CHANNEL, Served
from windlass.shared.store.record import Record, fetch, fetchrow

DAY = 86_400.0

LATEST = "(SELECT max(registered_at) FROM actor_versions)"
"""A registration writes all its versions at one time. What an older one wrote, nothing names any more."""


class Forgotten(Record):
    """What stands against it, and, where nothing does, what has gone."""

    is_known: bool
    is_named: bool
    """By the latest registration."""
    live_tasks: int
    live_workers: int
    queues: list[str]
    providers: list[str]


def named_queues(settings: Settings) -> list[str]:
    """The queues that the settings name."""
    own = [queue_name(name, table.provider or name) for name, table in settings.actors.items()]
    return sorted({*settings.all_queues(), *own} - {OWN})


async def unused_queues(db: Database, named: Collection[str], *, unused_seconds: float = DAY) -> list[Served]:
    """Those that are not `named`, have no live task, and have not been used for so long: nothing was registered or
    submitted for them, and no worker served them.

    Recent tasks are looked for by the actor and by the provider, where an index has the first of them at once.
    """
    return await fetch(
        db,
        Served,
        f"""
        WITH since AS (
            SELECT now() - make_interval(secs => $2) AS at,
                   -- The smallest UUIDv7 of that time.
                   (lpad(to_hex((extract(epoch FROM now() - make_interval(secs => $2)) * 1000)::bigint), 12, '0')
                    || '70008000000000000000')::uuid AS task_id
        )
        SELECT q.actor, q.provider FROM queues q CROSS JOIN since
        WHERE q.queue <> ALL ($1)
          AND NOT EXISTS (
              SELECT FROM actor_versions v
              WHERE v.actor = q.actor AND v.definition ->> 'provider' = q.provider
                AND (v.registered_at = {LATEST} OR coalesce(v.registered_at, v.created_at) > since.at))
          AND NOT EXISTS (SELECT FROM workers w WHERE w.heartbeat_at > since.at AND q.queue = ANY (w.queues))
          AND NOT EXISTS (SELECT FROM tasks t WHERE t.queue = q.queue AND t.status IN {words(WAITING)})
          AND NOT EXISTS (
              SELECT FROM tasks t WHERE t.provider = q.provider AND t.actor = q.actor AND t.status = 'running')
          AND NOT (
              EXISTS (SELECT FROM unnest(ARRAY['completed', 'dead', 'cancelled']) AS ended(status) JOIN tasks t
                      ON t.status = ended.status AND t.actor = q.actor AND t.task_id > since.task_id)
              AND EXISTS (SELECT FROM unnest(ARRAY['completed', 'dead', 'cancelled']) AS ended(status) JOIN tasks t
                          ON t.status = ended.status AND t.provider = q.provider AND t.task_id > since.task_id))
          AND NOT EXISTS (
              SELECT FROM tasks t WHERE t.status = 'blocked' AND t.actor = q.actor AND t.provider = q.provider)
        ORDER BY q.provider, q.actor
        """,  # noqa: S608 - the states' own words
        list(named),
        unused_seconds,
    )


async def forget(
    db: Database, actor: str, *, named_providers: Collection[str], heard_within_seconds: float
) -> Forgotten:
    """Deletes an actor's versions and queues, and those of its providers that serve nothing else, unless something
    stands against it. What is registered again is back."""
    row = await fetchrow(
        db,
        Forgotten,
        f"""
        WITH found AS (
            SELECT EXISTS (SELECT FROM actor_versions WHERE actor = $1)
                   OR EXISTS (SELECT FROM queues WHERE actor = $1) AS is_known,
                   EXISTS (SELECT FROM actor_versions WHERE actor = $1 AND registered_at = {LATEST}) AS is_named,
                   (SELECT count(*) FROM tasks WHERE actor = $1 AND status IN {words(LIVE)}) AS live_tasks,
                   (SELECT count(*) FROM workers w
                    WHERE w.state IN ('active', 'stopping')
                      AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $3)
                      AND (w.actor_versions ? $1
                           OR EXISTS (SELECT FROM unnest(w.queues) AS q WHERE split_part(q, '.', 1) = $1))
                   ) AS live_workers
        ), free AS (
            SELECT FROM found WHERE NOT is_named AND live_tasks = 0 AND live_workers = 0
        ), versions AS (
            DELETE FROM actor_versions WHERE actor = $1 AND EXISTS (SELECT FROM free)
        ), limits AS (
            DELETE FROM actors WHERE name = $1 AND EXISTS (SELECT FROM free)
        ), its AS (
            DELETE FROM queues WHERE actor = $1 AND EXISTS (SELECT FROM free) RETURNING queue, provider
        ), orphans AS (
            DELETE FROM providers p
            WHERE p.name IN (SELECT provider FROM its) AND p.name <> ALL ($2)
              AND NOT EXISTS (SELECT FROM queues q WHERE q.provider = p.name AND q.actor <> $1)
              AND NOT EXISTS (SELECT FROM tasks t WHERE t.provider = p.name AND t.status = 'running')
              AND NOT EXISTS (SELECT FROM tasks t WHERE t.provider = p.name AND t.job_open)
            RETURNING p.name
        ), told AS (
            SELECT pg_notify('{CHANNEL}', '') FROM free
        )
        SELECT found.*, ARRAY(SELECT queue FROM its ORDER BY 1) AS queues,
               ARRAY(SELECT name FROM orphans ORDER BY 1) AS providers, (SELECT count(*) FROM told) AS told
        FROM found
        """,  # noqa: S608 - names of our own
        actor,
        list(named_providers),
        heard_within_seconds,
    )
    assert row is not None, "it returns one row"
    return row
