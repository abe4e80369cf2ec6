"""The indexes of vectors, where Postgres has pgvector: one for each model, made and dropped beside what goes on."""

import asyncpg

from windlass.shared.db import Connection, Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch

FROM_EVENTS = 2000
"""So few are compared one by one, and none is left out."""

LOCK = "hashtext('windlass vector indexes')"
"""Advisory, of a session: what is half made is somebody's work as long as somebody has it."""

MEMORY = "256MB"
"""For making one: an index whose beginnings do not fit into it takes many times as long."""


REFUSED = asyncpg.PostgresError
"""Whatever Postgres has against one: a right that is missing, a version, a vector."""


class Wanted(Record):
    """An index that is to be made."""

    model_id: str
    name: str
    kept_as: str
    place: str


async def missing(db: Database) -> list[Wanted]:
    """Of models that get new vectors, once there is more than is compared one by one."""
    query = f"""
        SELECT model_id::text, name, kept_as, place FROM {named("vector_indexes")}() AS i
        WHERE NOT i.is_valid
          AND EXISTS (SELECT 1 FROM embedding_models m WHERE m.model_id = i.model_id AND m.state <> 'retired')
          AND EXISTS (SELECT 1 FROM agent_events OFFSET $1)
        ORDER BY i.model_id
    """  # noqa: S608 - a name of our own
    return await fetch(db, Wanted, query, FROM_EVENTS)


async def left_over(db: Database) -> list[str]:
    """Those that were not finished, and those of models that are gone."""
    rows = await db.fetch(
        """
        SELECT c.relname FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
        WHERE i.indrelid = 'embeddings'::regclass AND c.relname ~ '^embeddings_near_[0-9a-f]{32}$'
          AND (NOT i.indisvalid OR NOT EXISTS (
              SELECT 1 FROM embedding_models m WHERE replace(m.model_id::text, '-', '') = right(c.relname, 32)))
        ORDER BY c.relname
        """
    )
    return [row["relname"] for row in rows]


async def begin(connection: Connection) -> bool:
    """False while somebody else is at it."""
    begun: bool = await connection.fetchval(f"SELECT pg_try_advisory_lock({LOCK})")
    return begun


async def drop(connection: Connection, name: str) -> None:
    await connection.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")


async def make(connection: Connection, *, model_id: str, name: str, kept_as: str, place: str) -> None:
    """Nobody waits for it, and it waits for every transaction that is open: a connection without timeouts."""
    await connection.execute(f"SET maintenance_work_mem = '{MEMORY}'")
    await connection.execute(
        f"CREATE INDEX CONCURRENTLY {name} ON embeddings"
        f" USING hnsw ((vector::{kept_as}) {place}.halfvec_cosine_ops) WITH (m = 24, ef_construction = 160)"
        f" WHERE model_id = '{model_id}'"
    )
