"""Concurrency keys: their limits, and the tasks that are parked because theirs is full."""

from collections.abc import Mapping

from windlass.shared.db import Database
from windlass.shared.settings import Settings
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetchrow
from windlass.shared.toml_tables import DEFAULT_ACTORS

CHANNEL = "windlass_concurrency"
"""Called with the name of a provider where keys may have room, or with none for all of them."""

KEYS_AT_ONCE = 200
RELEASED_AT_ONCE = 500


class Rechecked(Record):
    """The last key of a page, none at the end; how many tasks went on, and whether somebody was in the way."""

    reached: list[str] | None
    released: int
    hindered: bool


async def configure(db: Database, settings: Settings) -> None:
    """As the tables say. Of an actor of somebody's own whose table says nothing, only who has loaded it knows."""
    told = {
        name: table.concurrency.limit if table.concurrency else None
        for name, table in settings.actors.items()
        if name in DEFAULT_ACTORS or "concurrency" in table.model_fields_set
    }
    await limit(db, told)


async def limit(db: Database, limits: Mapping[str, int | None], *, only_new: bool = False) -> None:
    """Writes how many of one key may run at once, by actor. What has changed holds at once for what waits: the janitor
    is told to look whether more may go on, and whoever starts tasks finds out that fewer may."""
    await db.execute(
        f"""
        WITH changed AS (
            INSERT INTO actors (name, concurrency_limit)
            SELECT name, most FROM unnest($1::text[], $2::int[]) AS configured(name, most) ORDER BY name
            ON CONFLICT (name) DO UPDATE SET concurrency_limit = excluded.concurrency_limit
            WHERE NOT $3::bool AND actors.concurrency_limit IS DISTINCT FROM excluded.concurrency_limit
            RETURNING name
        )
        SELECT pg_notify('{CHANNEL}', '') FROM changed
        """,  # noqa: S608 - a name of our own
        list(limits),
        list(limits.values()),
        only_new,
    )


async def recheck(db: Database, provider: str | None = None, after: list[str] | None = None) -> Rechecked:
    """Lets parked tasks go on whose key has room, a page of keys at a time, in all or of one provider, which is locked
    before anybody looks."""
    query = f"SELECT * FROM {named('recheck_keys')}($1, $2, $3, $4)"  # noqa: S608 - a name of our own
    row = await fetchrow(db, Rechecked, query, provider, after, KEYS_AT_ONCE, RELEASED_AT_ONCE)
    assert row is not None, "a function with outputs has a row"
    return row
