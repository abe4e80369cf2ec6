"""The models that vectors are of: rows, of which one is active."""

from uuid import UUID

from windlass.shared.db import Database
from windlass.shared.store.functions import named
from windlass.shared.store.record import fetch, fetchrow
from windlass.shared.store.rows import EmbeddingModelRow


class CountedModel(EmbeddingModelRow):
    """With how many events have a vector of it, and how many wait for one."""

    vectors: int
    missing: int


async def get(db: Database, model_id: UUID) -> EmbeddingModelRow | None:
    return await fetchrow(db, EmbeddingModelRow, "SELECT * FROM embedding_models WHERE model_id = $1", model_id)


async def active(db: Database) -> EmbeddingModelRow | None:
    return await fetchrow(db, EmbeddingModelRow, "SELECT * FROM embedding_models WHERE state = 'active'")


async def of_provider(db: Database, provider: str) -> EmbeddingModelRow | None:
    query = """
        SELECT * FROM embedding_models WHERE provider = $1 AND state <> 'retired'
        ORDER BY state = 'active' DESC, model_id DESC LIMIT 1
    """
    return await fetchrow(db, EmbeddingModelRow, query, provider)


async def every(db: Database) -> list[CountedModel]:
    return await fetch(
        db,
        CountedModel,
        """
        SELECT m.*, counted.vectors, counted.missing FROM embedding_models m
        CROSS JOIN LATERAL (
            SELECT count(*) FILTER (WHERE v.vector IS NOT NULL) AS vectors,
                   count(*) FILTER (WHERE v.vector IS NULL) AS missing
            FROM embeddings v WHERE v.model_id = m.model_id
        ) AS counted
        ORDER BY m.model_id
        """,
    )


async def create(
    db: Database, *, name: str, provider: str, dimensions: int, activate_when_filled: bool = False
) -> UUID | None:
    """None when there is one of that name already."""
    query = f"SELECT {named('create_model')}($1, $2, $3, $4)"
    created: UUID | None = await db.fetchval(query, name, provider, dimensions, activate_when_filled)
    return created


async def activate(db: Database, model_id: UUID) -> bool:
    """False when there is none. From its commit on, questions are asked in this one's vectors."""
    activated: bool = await db.fetchval(f"SELECT {named('activate_model')}($1)", model_id)
    return activated


async def activate_filled(db: Database) -> UUID | None:
    """The one that was made to take over when it is filled, if it is."""
    activated: UUID | None = await db.fetchval(f"SELECT {named('activate_filled_model')}()")
    return activated


async def delete(db: Database, model_id: UUID) -> str | None:
    """What it was: one that was active still is; none when there was none."""
    was: str | None = await db.fetchval(f"SELECT {named('delete_model')}($1)", model_id)
    return was
