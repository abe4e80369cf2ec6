"""The vector of a question: made by an `embed` task, waited for, and kept a while."""

import asyncio
import time
from collections.abc import Sequence
from hashlib import sha256
from uuid import UUID

from uuid_utils.compat import uuid7

from windlass.shared.db import Database
from windlass.shared.hashing import HASH_PROVIDER, hashed
from windlass.shared.store import tasks
from windlass.shared.store.rows import EmbeddingModelRow
from windlass.shared.store.tasks import Submission

WAIT_SECONDS = 2.0
LOOK_SECONDS = 0.05
KEPT_SECONDS = 3600
LONGEST_QUESTION = 2000


def question_hash(question: str) -> bytes:
    return sha256(question.encode(errors="replace")).digest()


async def vector_of(
    db: Database, model: EmbeddingModelRow, question: str, *, user_id: str, wait_seconds: float = WAIT_SECONDS
) -> list[float] | None:
    """None when there is none in time: whoever asks goes on without. What needs no provider is made here. Whoever asks
    the same again while it is being made waits for the same task."""
    question = question[:LONGEST_QUESTION]
    if model.provider == HASH_PROVIDER:
        return hashed(question, model.dimensions)
    until = time.monotonic() + wait_seconds
    asked = question_hash(question)
    if (vector := await _kept(db, model.model_id, asked)) is not None:
        return vector
    await tasks.submit_keyed(db, [_task(model, question, asked, user_id)])
    while True:
        vector, is_over = await _kept(db, model.model_id, asked), time.monotonic() >= until
        if vector is not None or is_over:
            return vector
        await asyncio.sleep(LOOK_SECONDS)


def _task(model: EmbeddingModelRow, question: str, asked: bytes, user_id: str) -> Submission:
    """Before all else that waits there: somebody does. The key means it for as long as its vector is kept."""
    return Submission(
        task_id=uuid7(),
        actor="embed",
        provider=model.provider,
        payload={"model_id": str(model.model_id), "text": question},
        user_id=user_id,
        timeout_seconds=30,
        priority=0,
        max_retries=1,
        dedupe_key=f"question:{model.model_id}:{asked.hex()[:32]}",
        dedupe_ttl_seconds=KEPT_SECONDS / 2,
    )


async def _kept(db: Database, model_id: UUID, asked: bytes) -> list[float] | None:
    vector: list[float] | None = await db.fetchval(
        """
        SELECT vector FROM question_vectors
        WHERE model_id = $1 AND question_hash = $2 AND created_at > clock_timestamp() - make_interval(secs => $3)
        """,
        model_id,
        asked,
        float(KEPT_SECONDS),
    )
    return vector


async def keep(db: Database, model_id: UUID, question: str, vector: Sequence[float]) -> None:
    await db.execute(
        """
        INSERT INTO question_vectors (model_id, question_hash, vector) VALUES ($1, $2, $3)
        ON CONFLICT (model_id, question_hash) DO UPDATE
        SET vector = excluded.vector, created_at = clock_timestamp()
        """,
        model_id,
        question_hash(question),
        list(vector),
    )


async def forget(db: Database) -> None:
    await db.execute(
        "DELETE FROM question_vectors WHERE created_at < clock_timestamp() - make_interval(secs => $1)",
        float(KEPT_SECONDS),
    )
