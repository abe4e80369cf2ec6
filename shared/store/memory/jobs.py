"""Embedding jobs: up to 64 events each, carried out by `embed` tasks that they share their fate with."""

from collections.abc import Sequence
from uuid import UUID

from windlass.shared.db import Database, as_json
from windlass.shared.store.functions import named
from windlass.shared.store.record import Record, fetch, fetchrow
from windlass.shared.store.rows import EmbeddingJobRow
from windlass.shared.store.tasks.claiming import Claimed
from windlass.shared.store.tasks.fencing import fence

OWNER = "system"
PRIORITY = 9
TEMPLATE = {"actor": "embed", "user_id": OWNER, "priority": PRIORITY, "timeout_seconds": 120, "max_retries": 5}
"""What all tasks of jobs have in common."""

MOST_FILLING = 4
"""So many jobs for what was there before a model are open at once."""


class Gathered(Record):
    gathered: int
    again_seconds: float | None


class Text(Record):
    """An event that still needs its vector."""

    event_id: UUID
    text: str


class JobOfModel(Record):
    """A job, and the model that it is for."""

    job_id: UUID
    model_id: UUID
    model: str
    provider: str
    dimensions: int
    event_ids: list[UUID]


async def gather(db: Database, *, longest_seconds: float = 5.0) -> float:
    """Sorts in the words of new events and files the jobs for their vectors; returns in how many seconds it is worth
    looking again."""
    query = f"SELECT * FROM {named('gather_events')}($1::text::jsonb, $2)"  # noqa: S608 - a name of our own
    while True:
        row = await fetchrow(db, Gathered, query, as_json(TEMPLATE), longest_seconds)
        assert row is not None, "a function with outputs has a row"
        if row.again_seconds is not None:
            return row.again_seconds


async def backfill(db: Database) -> int:
    """Goes on with what was there before a model; returns how many jobs were filed."""
    filed: int = await db.fetchval(
        f"SELECT {named('backfill_models')}($1::text::jsonb, $2)", as_json(TEMPLATE), MOST_FILLING
    )
    return filed


async def is_memory_waiting(db: Database) -> bool:
    """Whether anything is left to be gathered, or a model to be filled or activated."""
    waiting: bool = await db.fetchval(f"SELECT {named('is_memory_waiting')}()")
    return waiting


async def of_model(db: Database, job_id: UUID) -> JobOfModel | None:
    return await fetchrow(
        db,
        JobOfModel,
        """
        SELECT j.job_id, j.model_id, m.name AS model, m.provider, m.dimensions, j.event_ids
        FROM embedding_jobs j JOIN embedding_models m ON m.model_id = j.model_id WHERE j.job_id = $1
        """,
        job_id,
    )


async def texts(db: Database, job: JobOfModel) -> list[Text]:
    """Of those of its events that are still there and have no vector yet."""
    return await fetch(
        db,
        Text,
        """
        SELECT e.event_id, e.text FROM unnest($1::uuid[]) AS one(event_id)
        JOIN agent_events e ON e.event_id = one.event_id
        JOIN embeddings v ON v.event_id = e.event_id AND v.model_id = $2 AND v.vector IS NULL
        ORDER BY e.event_id
        """,
        job.event_ids,
        job.model_id,
    )


async def keep_vectors(
    db: Database, model_id: UUID, event_ids: Sequence[UUID], vectors: Sequence[Sequence[float]]
) -> None:
    """Each event's, all of one width, in one statement. Repeated, it comes to the same."""
    wide = len(vectors[0])
    await db.execute(
        """
        UPDATE embeddings v SET vector = ($3::real[])[(one.place - 1) * $4 + 1 : one.place * $4]
        FROM unnest($2::uuid[]) WITH ORDINALITY AS one(event_id, place)
        WHERE v.event_id = one.event_id AND v.model_id = $1
        """,
        model_id,
        list(event_ids),
        [part for vector in vectors for part in vector],
        wide,
    )


async def split(db: Database, task: Claimed, job_id: UUID) -> bool:
    """Makes two jobs of one; false when that was done before, or is no longer this attempt's to do."""
    query = f"SELECT {named('split_job')}($1::text::jsonb, $2, $3::text::jsonb)"
    done: bool = await db.fetchval(query, fence(task), job_id, as_json(TEMPLATE))
    return done


async def newest(db: Database, *, state: str | None, before: UUID | None, limit: int) -> list[EmbeddingJobRow]:
    return await fetch(
        db,
        EmbeddingJobRow,
        """
        SELECT * FROM embedding_jobs
        WHERE ($1::text IS NULL OR state = $1) AND ($2::uuid IS NULL OR job_id < $2) ORDER BY job_id DESC LIMIT $3
        """,
        state,
        before,
        limit,
    )


async def get(db: Database, job_id: UUID) -> EmbeddingJobRow | None:
    return await fetchrow(db, EmbeddingJobRow, "SELECT * FROM embedding_jobs WHERE job_id = $1", job_id)
