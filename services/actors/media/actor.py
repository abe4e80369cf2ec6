"""The media actor: has a picture or a film made by a provider, once, and keeps the files."""

from collections.abc import Callable, Coroutine, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx

from windlass.actors import actor
from windlass.services.actors.media.counted_provider import CountedProvider
from windlass.services.actors.media.fetching import Fetching
from windlass.services.actors.media.open_jobs import OpenJobs
from windlass.services.actors.media.orders import Orders
from windlass.services.actors.media.polling import Polling
from windlass.services.actors.worker.context.async_context import AsyncAttempt
from windlass.shared.actors.payloads import MediaPayload
from windlass.shared.db import Database
from windlass.shared.errors import InvalidInput
from windlass.shared.order_states import OrderState
from windlass.shared.providers.base import MediaProvider
from windlass.shared.providers.http.addresses import Allowances
from windlass.shared.providers.http.network import open_client
from windlass.shared.providers.registry import media_provider
from windlass.shared.settings import Settings
from windlass.shared.signing import MEDIA_URLS, media_url
from windlass.shared.storage import UnusableStorage, claim_directory, open_storage
from windlass.shared.store.access import secrets
from windlass.shared.store.orders import contents, picture_for
from windlass.shared.store.rows import GenerationRow


@actor
class Media:
    """Made once per worker process; an attempt goes through `__call__` from top to bottom."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._storage = open_storage(settings)
        self._clients: dict[str, httpx.AsyncClient] = {}
        self._polling = Polling()
        self._url_secret: bytes | None = None

    async def __call__(self, context: AsyncAttempt, payload: MediaPayload) -> dict[str, Any]:
        url_secret = await self._secret_of_urls(context)
        source_image = await self._source_image(context, payload, url_secret)
        provider = context.task.provider
        orders = Orders(self._settings, context, payload, self._provider(provider), polling=self._polling)
        order = await orders.take_up(source_image)
        if order.status == OrderState.COMPLETED:
            content_ids = [each.content_id for each in await context.ask(contents, order.generation_id)]
        else:
            done = await orders.wait(order)
            await orders.begin_to_fetch(order, done)
            fetching = Fetching(self._settings, context, self._client(provider), self._storage)
            kept = await fetching.fetch(order, done.urls)
            await orders.complete(order, kept)
            content_ids = [each.content_id for each in kept]
        return self._result(order, content_ids, url_secret)

    async def prepare(self, pool: Database) -> None:
        try:
            await claim_directory(pool, self._storage)
        except UnusableStorage as error:
            raise SystemExit(f"windlass: {error}") from error

    async def accompany(self, ask: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        queues = self._settings.consumed_queues(["media"])
        names = [queue.partition(".")[2] for queue in queues]
        await OpenJobs(self._settings, self._storage, names, self._provider, ask).run()

    def _result(self, order: GenerationRow, content_ids: Sequence[UUID], url_secret: bytes) -> dict[str, Any]:
        return {
            "generation_id": str(order.generation_id),
            "content_ids": [str(content_id) for content_id in content_ids],
            "urls": [self._url(url_secret, content_id) for content_id in content_ids],
        }

    async def _secret_of_urls(self, context: AsyncAttempt) -> bytes:
        """Kept, as the api keeps it: it stays the same."""
        if self._url_secret is None:
            self._url_secret = await context.ask(secrets.ensure, MEDIA_URLS)
        return self._url_secret

    async def _source_image(self, context: AsyncAttempt, payload: MediaPayload, url_secret: bytes) -> str | None:
        """The URL that the provider is to begin with: the client's, or that of a file which Windlass keeps."""
        given = payload.source_image
        if given is None or "://" in given:
            return given
        content_id = UUID(given)
        if await context.ask(picture_for, context.task_id, content_id) is None:
            raise InvalidInput(f"there is no content {content_id}", source_image=given)
        return self._url(url_secret, content_id)

    def _url(self, secret: bytes, content_id: UUID) -> str:
        return media_url(self._settings, secret, content_id, datetime.now(UTC))

    def _provider(self, name: str) -> MediaProvider:
        return CountedProvider(name, media_provider(self._settings, name, self._client(name)))

    def _client(self, name: str) -> httpx.AsyncClient:
        """One for each provider, kept: making one reads the system's certificates."""
        if name not in self._clients:
            seconds = self._settings.providers[name].call_timeout_seconds
            self._clients[name] = open_client(Allowances.of(self._settings), timeout_seconds=seconds)
        return self._clients[name]
