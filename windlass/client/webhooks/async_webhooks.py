"""Webhooks for asyncio."""

from collections.abc import AsyncIterator, Sequence
from typing import Unpack

from windlass.client.speaking import AsyncSpeaker
from windlass.client.webhooks import calls
from windlass.client.webhooks.documents import (
    Delivery,
    DeliveryState,
    Replay,
    Scope,
    SecretWebhook,
    Webhook,
    WholeDelivery,
)
from windlass.client.webhooks.options import DeliveryId, WebhookChange, WebhookFilter, WebhookId


class AsyncWebhooks:
    """Endpoints that are told of what happens, and their deliveries: `client.webhooks`."""

    def __init__(self, client: AsyncSpeaker) -> None:
        self._client = client

    async def create(
        self,
        url: str,
        *,
        events: Sequence[str],
        only: WebhookFilter | None = None,
        scope: Scope | None = None,
        description: str | None = None,
    ) -> SecretWebhook:
        """An endpoint, with its secret, which is told this once. `events` are as `task.completed`, or `task.*`; `only`
        narrows them to a project, a workflow, an actor or a tag."""
        return await self._client.perform(calls.create(url, events, only, scope, description))

    def list(self, *, page_size: int = 200) -> AsyncIterator[Webhook]:
        """Newest first, page after page."""
        return self._client.items_of(calls.list_webhooks(page_size))

    async def get(self, webhook_id: WebhookId) -> Webhook:
        return await self._client.perform(calls.get(webhook_id))

    async def change(self, webhook_id: WebhookId, **changes: Unpack[WebhookChange]) -> Webhook:
        """The next try knows of it."""
        return await self._client.perform(calls.change(webhook_id, changes))

    async def delete(self, webhook_id: WebhookId, *, reason: str | None = None) -> None:
        """Its deliveries are kept, and what waits is given up."""
        await self._client.perform(calls.delete(webhook_id, reason))

    async def test(self, webhook_id: WebhookId, *, reason: str | None = None) -> Delivery:
        """Sends it `webhook.test`, once, however it is."""
        return await self._client.perform(calls.send_test(webhook_id, reason))

    async def rotate(self, webhook_id: WebhookId, *, reason: str | None = None) -> SecretWebhook:
        """A new secret; for a day the one before it signs as well."""
        return await self._client.perform(calls.rotate(webhook_id, reason))

    async def disable(self, webhook_id: WebhookId, *, reason: str | None = None) -> Webhook:
        """What it would be told is held until it is enabled."""
        return await self._client.perform(calls.disable(webhook_id, reason))

    async def enable(self, webhook_id: WebhookId, *, replay: Replay = "held", reason: str | None = None) -> Webhook:
        """Also one that is failing or gone; what was held is sent, or given up with `replay="none"`."""
        return await self._client.perform(calls.enable(webhook_id, replay, reason))

    def deliveries(
        self, webhook_id: WebhookId, *, state: DeliveryState | None = None, page_size: int = 200
    ) -> AsyncIterator[Delivery]:
        """Newest first, page after page."""
        return self._client.items_of(calls.deliveries(webhook_id, state, page_size))

    async def delivery(self, delivery_id: DeliveryId) -> WholeDelivery:
        """With what is sent, and every try."""
        return await self._client.perform(calls.delivery(delivery_id))

    async def redeliver(self, delivery_id: DeliveryId, *, reason: str | None = None) -> Delivery:
        """Sends it once more, now, under the same `webhook-id`."""
        return await self._client.perform(calls.redeliver(delivery_id, reason))
