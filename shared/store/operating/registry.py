"""The actors there are, as rows: what each version takes, who runs which, and the queues of those without a table."""

from collections.abc import Collection
from datetime import datetime
from typing import Any

import msgspec

from windlass.shared.actors.definition import Definition
from windlass.shared.db import Database, as_json
from windlass.shared.settings import queue_name
from windlass.shared.store.flow_control import keys
from windlass.shared.store.record import Record, fetch

CHANNEL = "windlass_actors"
"""Called when a version is registered, or a worker comes with one."""

KEPT_SECONDS = 7 * 86400.0
"""For so long a version that nobody runs any more can still be named to whose task it took."""


class RegisteredVersion(Record):
    """A version, with the workers that run it; `is_last` for the one of its actor that was registered last."""

    actor: str
    version: str
    definition: dict[str, Any]
    registered_at: datetime | None
    created_at: datetime
    workers: list[str]
    is_last: bool


class VersionsAlive(Record):
    """How many versions of an actor are at work."""

    actor: str
    versions: int


class Served(Record):
    """A queue, whose provider may have no table."""

    actor: str
    provider: str


async def register(db: Database, definitions: Collection[Definition]) -> None:
    """What tasks are checked by from now on, before there is a worker. Said again it changes nothing, but that the
    version is the last registered one: so a rollback is one, too. All of one call have the same time, by which `unused`
    tells what nothing names any more. What nobody has run for long goes."""
    await _make_queues(db, definitions)
    await keys.limit(db, _limits(definitions))
    await db.execute(
        f"""
        WITH written AS (
            INSERT INTO actor_versions (actor, version, definition, registered_at)
            SELECT * FROM {_GIVEN}, now() ORDER BY actor, version
            ON CONFLICT (actor, version) DO UPDATE SET registered_at = excluded.registered_at RETURNING actor
        )
        SELECT pg_notify('{CHANNEL}', '') FROM written LIMIT 1
        """,  # noqa: S608 - names of our own
        _given(definitions),
    )
    await drop_unused(db, [each.name for each in definitions])


async def announce(db: Database, definitions: Collection[Definition]) -> None:
    """A worker's own versions, before its row names them. They count while it lives, and do not take the place of what
    was registered: a laptop that strays in here changes nothing for those who come after it."""
    await _make_queues(db, definitions)
    await keys.limit(db, _limits(definitions), only_new=True)
    await db.execute(
        f"""
        WITH written AS (
            INSERT INTO actor_versions (actor, version, definition)
            SELECT * FROM {_GIVEN} ORDER BY actor, version ON CONFLICT (actor, version) DO NOTHING RETURNING actor
        )
        SELECT pg_notify('{CHANNEL}', '') FROM written LIMIT 1
        """,  # noqa: S608 - names of our own
        _given(definitions),
    )


async def drop_unused(db: Database, actors: Collection[str], *, kept_seconds: float = KEPT_SECONDS) -> None:
    """Of these actors, the versions that no worker runs, unless they are the last registered or were so lately."""
    await db.execute(
        """
        WITH ranked AS (
            SELECT actor, version, coalesce(registered_at, created_at) AS at,
                   row_number() OVER (
                       PARTITION BY actor ORDER BY registered_at DESC NULLS LAST, created_at DESC) AS rank
            FROM actor_versions WHERE actor = ANY ($1)
        )
        DELETE FROM actor_versions AS v USING ranked AS r
        WHERE v.actor = r.actor AND v.version = r.version AND r.rank > 1
          AND r.at < clock_timestamp() - make_interval(secs => $2)
          AND NOT EXISTS (
              SELECT FROM workers AS w
              WHERE w.state IN ('active', 'stopping') AND w.actor_versions ->> v.actor = v.version)
        """,
        sorted(actors),
        kept_seconds,
    )


async def read(db: Database, *, heard_within_seconds: float, actor: str | None = None) -> list[RegisteredVersion]:
    """Every version, of one actor or of all; of each actor the last registered first."""
    return await fetch(
        db,
        RegisteredVersion,
        """
        WITH live AS MATERIALIZED (
            SELECT worker_id, actor_versions FROM workers
            WHERE state = 'active' AND heartbeat_at > clock_timestamp() - make_interval(secs => $1)
        ), ranked AS (
            SELECT v.*, row_number() OVER (
                PARTITION BY v.actor ORDER BY v.registered_at DESC NULLS LAST, v.created_at DESC) AS rank
            FROM actor_versions AS v WHERE $2::text IS NULL OR v.actor = $2
        )
        SELECT r.actor, r.version, r.definition, r.registered_at, r.created_at, r.rank = 1 AS is_last,
               ARRAY(SELECT live.worker_id::text FROM live WHERE live.actor_versions ->> r.actor = r.version ORDER BY 1)
               AS workers
        FROM ranked AS r ORDER BY r.actor, r.rank
        """,
        heard_within_seconds,
        actor,
    )


async def alive(db: Database, *, heard_within_seconds: float) -> list[VersionsAlive]:
    """Of every actor that is known, also of those that nobody runs."""
    return await fetch(
        db,
        VersionsAlive,
        """
        WITH run AS (
            SELECT DISTINCT each.key AS actor, each.value AS version
            FROM workers AS w CROSS JOIN LATERAL jsonb_each_text(w.actor_versions) AS each
            WHERE w.state = 'active' AND w.heartbeat_at > clock_timestamp() - make_interval(secs => $1)
        )
        SELECT known.actor, (SELECT count(*) FROM run WHERE run.actor = known.actor) AS versions
        FROM (SELECT DISTINCT actor FROM actor_versions) AS known ORDER BY known.actor
        """,
        heard_within_seconds,
    )


async def queues(db: Database) -> list[Served]:
    """Who may be asked for what, as far as there are rows; also of long ago."""
    return await fetch(db, Served, "SELECT actor, provider FROM queues ORDER BY provider, actor")


async def _make_queues(db: Database, definitions: Collection[Definition]) -> None:
    """Of providers that may have no table: such a one has no limit, and whoever has a table for it says otherwise."""
    named = sorted({(each.provider, each.name) for each in definitions if each.provider is not None})
    await db.executemany("INSERT INTO providers (name, actor) VALUES ($1, $2) ON CONFLICT (name) DO NOTHING", named)
    await db.executemany(
        "INSERT INTO queues (queue, provider, actor) VALUES ($1, $2, $3) ON CONFLICT (queue) DO NOTHING",
        [(queue_name(actor, provider), provider, actor) for provider, actor in named],
    )


def _limits(definitions: Collection[Definition]) -> dict[str, int | None]:
    """Of the actors that no table of ours speaks of."""
    return {each.name: each.concurrency_limit for each in definitions if each.module is not None}


_GIVEN = "jsonb_to_recordset($1::text::jsonb) AS given(actor text, version text, definition jsonb)"


def _given(definitions: Collection[Definition]) -> str:
    return as_json(
        [{"actor": each.name, "version": each.version, "definition": msgspec.to_builtins(each)} for each in definitions]
    )
