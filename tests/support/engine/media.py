"""Generations and their files, as a worker leaves them, for tests that need no provider."""

import asyncio
import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from uuid_utils.compat import uuid7

from tests.support.engine.one_order import intend_one
from tests.support.engine.store import Engine
from windlass.shared.storage import MediaStorage
from windlass.shared.store import orders
from windlass.shared.store.order_steps import Intent, NewContent
from windlass.shared.store.tasks import Claimed


@dataclass(frozen=True)
class File:
    """A file to be, and what its row will say of it."""

    content_id: UUID
    data: bytes
    media_type: str
    extension: str
    provider_url: str


@dataclass(frozen=True)
class Order:
    """An order that a worker has intended, and the token that its provider may call back with."""

    attempt: Claimed
    generation_id: UUID
    token: str


def a_content(
    data: bytes, *, media_type: str = "image/png", extension: str = "png", provider_url: str = "https://files.example/1"
) -> File:
    return File(uuid7(), data, media_type, extension, provider_url)


async def ordered(
    engine: Engine,
    *,
    task: dict[str, Any] | None = None,
    request: dict[str, Any] | None = None,
    source_data: Any = None,
    prompt_id: str | None = None,
) -> Order:
    """A running task with an intent: what was sent to the provider, nobody knows yet."""
    attempt = await engine.running(**{"actor": "media", "provider": "probe", **(task or {})})
    generation_id, token = uuid7(), f"token-{uuid7()}"
    intent = Intent(
        generation_id,
        "txt2img",
        request or {"prompt": "a lighthouse"},
        hashlib.sha256(token.encode()).hexdigest(),
        prompt_id=prompt_id,
        source_data=source_data,
    )
    assert await intend_one(engine.pool, attempt, intent)
    return Order(attempt, generation_id, token)


async def generated(
    engine: Engine, files: Sequence[File], *, storage: MediaStorage, job_id: str = "job-1", **order: Any
) -> Order:
    """The same, come to its end: the files are stored, and the task has completed with what the media actor says."""
    made = await ordered(engine, **order)
    assert await orders.move(engine.pool, made.attempt, made.generation_id, "place", job_id=job_id)
    assert await orders.move(engine.pool, made.attempt, made.generation_id, "fetch")
    contents = [await stored(storage, file, made.generation_id, index) for index, file in enumerate(files)]
    assert await orders.move(engine.pool, made.attempt, made.generation_id, "complete", contents=contents)
    result = {
        "generation_id": str(made.generation_id),
        "content_ids": [str(file.content_id) for file in files],
        "urls": ["https://old.example/expired" for _ in files],
    }
    assert await engine.finish(made.attempt, result=result) == "completed"
    return made


async def stored(storage: MediaStorage, file: File, generation_id: UUID, index: int) -> NewContent:
    place = f"{generation_id}/1-{index}.{file.extension}"
    await put(storage, place, file.data)
    digest = hashlib.sha256(file.data).hexdigest()
    return NewContent(
        file.content_id, index, file.provider_url, file.media_type, file.extension, place, len(file.data), digest
    )


async def put(storage: MediaStorage, place: str, data: bytes) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "file"
        await asyncio.to_thread(path.write_bytes, data)
        await storage.put(place, path)
