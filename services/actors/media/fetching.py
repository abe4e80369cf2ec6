"""From a provider's URLs to files of our own: each under a name that no other attempt uses, safe before it is known."""

import asyncio
import shutil
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

import httpx
import uuid_utils.compat as uuid_utils

from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.services.actors.worker.metrics import provider_call
from windlass.shared.metrics.providers import MEDIA_BYTES
from windlass.shared.order_states import OrderState
from windlass.shared.providers.http.download import download
from windlass.shared.settings import Settings
from windlass.shared.storage import MediaStorage
from windlass.shared.store.order_steps import NewContent
from windlass.shared.store.rows import GenerationRow


class Fetching:
    """One attempt's. What an attempt before it left unfinished goes first: no file stays without a row. There is none
    where nobody has begun to fetch before."""

    def __init__(
        self,
        settings: Settings,
        context: AsyncAttempt,
        http: httpx.AsyncClient,
        storage: MediaStorage,
    ) -> None:
        self._settings = settings
        self._context = context
        self._http = http
        self._storage = storage

    async def fetch(self, order: GenerationRow, urls: Sequence[str]) -> list[NewContent]:
        generation_id = order.generation_id
        if order.status == OrderState.FETCHING:
            await sweep(self._settings, self._storage, generation_id)
        directory = downloads_of(self._settings, generation_id)
        directory.mkdir(parents=True)
        try:
            return [await self._keep(generation_id, directory, index, url, len(urls)) for index, url in enumerate(urls)]
        finally:
            await asyncio.to_thread(shutil.rmtree, directory, ignore_errors=True)

    async def _keep(self, generation_id: UUID, directory: Path, index: int, url: str, number: int) -> NewContent:
        context = self._context
        context.progress(f"Fetching file {index + 1} of {number}", percent=100 * index / number)
        file = directory / str(index)
        with provider_call(context.task.provider, "download"):
            got = await download(
                self._http,
                url,
                file,
                largest_bytes=self._settings.largest_media_bytes,
                seconds=context.task.timeout_seconds,
            )
        place = f"{generation_id}/{context.task.attempt}-{index}.{got.extension}"
        await self._storage.put(place, file)
        MEDIA_BYTES.labels(context.task.provider).inc(got.size_bytes)
        return NewContent(
            content_id=UUID(bytes=uuid_utils.uuid7().bytes),
            index=index,
            provider_url=url,
            media_type=got.media_type,
            extension=got.extension,
            place=place,
            size_bytes=got.size_bytes,
            sha256=got.sha256,
        )


def downloads_of(settings: Settings, generation_id: UUID) -> Path:
    return settings.data_dir / "downloads" / str(generation_id)


async def sweep(settings: Settings, storage: MediaStorage, generation_id: UUID) -> None:
    """Removes the files of a generation that no row names: only while none of its contents are kept."""
    shutil.rmtree(downloads_of(settings, generation_id), ignore_errors=True)
    left = [place async for place in storage.places(str(generation_id))]
    for place in left:
        await storage.remove(place)
