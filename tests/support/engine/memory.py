"""Memory on the engine: tasks whose ends are written down, and what the janitor and the `embed` actor do with them."""

from typing import Any
from uuid import UUID

from tests.support.engine.store import Engine
from windlass.shared.concerns import Concern
from windlass.shared.features.catching_up import CatchUp
from windlass.shared.features.memory.subscriber import MEMORY
from windlass.shared.hashing import DIMENSIONS, HASH_MODEL, HASH_PROVIDER, hashed
from windlass.shared.store.memory import jobs
from windlass.shared.store.memory.jobs import JobOfModel
from windlass.shared.store.record import fetch
from windlass.shared.store.rows import AgentEventRow, EmbeddingJobRow

REMEMBERED: dict[str, Any] = {"concerns": Concern.MEMORY.value}
HASH_ID = UUID("00000000-0000-7000-8000-000000000256")


async def with_the_hash_model(engine: Engine) -> None:
    """As the migration leaves it; a test begins with empty tables."""
    await engine.sql(
        """
        INSERT INTO embedding_models (model_id, name, provider, dimensions, state, is_filled)
        VALUES ($1, $2, $3, $4, 'active', true)
        """,
        HASH_ID,
        HASH_MODEL,
        HASH_PROVIDER,
        DIMENSIONS,
    )
    await engine.provide(HASH_PROVIDER, limit=2, actors=("embed",))


async def an_agent(engine: Engine, prompt: str, answer: str = "done", **fields: Any) -> UUID:
    """One that completed, and whose end was written down."""
    attempt = await engine.running(payload={"prompt": prompt}, **{**REMEMBERED, **fields})
    assert await engine.finish(attempt, result={"answer": answer}) == "completed"
    return attempt.task_id


async def catch_up(engine: Engine) -> None:
    """As the api does before each read of memory."""
    await CatchUp(engine.pool, MEMORY)()


async def events(engine: Engine) -> list[AgentEventRow]:
    await catch_up(engine)
    return await fetch(engine.pool, AgentEventRow, "SELECT * FROM agent_events ORDER BY event_id")


async def gather_now(engine: Engine) -> None:
    """As if the oldest had waited long enough."""
    await catch_up(engine)
    await engine.sql("UPDATE agent_events SET at = at - interval '1 min' WHERE gathered_at IS NULL")
    await jobs.gather(engine.pool)


async def waiting_jobs(engine: Engine) -> list[EmbeddingJobRow]:
    await catch_up(engine)
    return await jobs.newest(engine.pool, state="waiting", before=None, limit=500)


async def embed_all(engine: Engine) -> int:
    """Does every job that waits, as the actor does with `hash-256`; returns how many there were."""
    done = 0
    while waiting := await waiting_jobs(engine):
        for job in waiting:
            attempt = await engine.start(job.task_id)
            await embed(engine, job.job_id)
            await engine.finish(attempt)
            done += 1
    return done


async def embed(engine: Engine, job_id: UUID) -> None:
    job = await jobs.of_model(engine.pool, job_id)
    assert isinstance(job, JobOfModel)
    texts = await jobs.texts(engine.pool, job)
    if texts:
        vectors = [hashed(each.text, job.dimensions) for each in texts]
        await jobs.keep_vectors(engine.pool, job.model_id, [each.event_id for each in texts], vectors)
