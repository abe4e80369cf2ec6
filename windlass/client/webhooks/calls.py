"""Every call about webhooks: its path, what it takes and what it answers."""

from collections.abc import Sequence
from typing import Final

from windlass.client.call import Call
from windlass.client.calls import API, named, without_none
from windlass.client.task import Listing
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

WEBHOOKS: Final = f"{API}/webhooks"


def create(
    url: str, events: Sequence[str], only: WebhookFilter | None, scope: Scope | None, description: str | None
) -> Call[SecretWebhook]:
    """Not repeated: of a second one the url would be taken, and the secret of the first nobody has seen."""
    body = {
        "url": url,
        "events": list(events),
        **without_none({"filter": only, "scope": scope, "description": description}),
    }
    return Call("POST", WEBHOOKS, SecretWebhook, body=body, repeatable=False)


def list_webhooks(page_size: int | None = None) -> Call[Listing[Webhook]]:
    return Call("GET", WEBHOOKS, Listing[Webhook], params={"limit": page_size})


def get(webhook_id: WebhookId) -> Call[Webhook]:
    return Call("GET", _webhook(webhook_id), Webhook)


def change(webhook_id: WebhookId, changes: WebhookChange) -> Call[Webhook]:
    return Call("PATCH", _webhook(webhook_id), Webhook, body=dict(changes))


def delete(webhook_id: WebhookId, reason: str | None = None) -> Call[bytes]:
    """Not repeated: a second one would not find it."""
    return Call("DELETE", _webhook(webhook_id), bytes, params={"reason": reason}, is_raw=True, repeatable=False)


def send_test(webhook_id: WebhookId, reason: str | None = None) -> Call[Delivery]:
    body = without_none({"reason": reason})
    return Call("POST", f"{_webhook(webhook_id)}/test", Delivery, body=body, repeatable=False)


def rotate(webhook_id: WebhookId, reason: str | None = None) -> Call[SecretWebhook]:
    """Not repeated: a second one would end the secret that the receiver still has."""
    body = without_none({"reason": reason})
    return Call("POST", f"{_webhook(webhook_id)}/rotate", SecretWebhook, body=body, repeatable=False)


def disable(webhook_id: WebhookId, reason: str | None = None) -> Call[Webhook]:
    return Call("POST", f"{_webhook(webhook_id)}/disable", Webhook, body=without_none({"reason": reason}))


def enable(webhook_id: WebhookId, replay: Replay = "held", reason: str | None = None) -> Call[Webhook]:
    body = {"replay": replay, **without_none({"reason": reason})}
    return Call("POST", f"{_webhook(webhook_id)}/enable", Webhook, body=body)


def deliveries(
    webhook_id: WebhookId, state: DeliveryState | None = None, page_size: int | None = None
) -> Call[Listing[Delivery]]:
    params = {"state": state, "limit": page_size}
    return Call("GET", f"{_webhook(webhook_id)}/deliveries", Listing[Delivery], params=params)


def delivery(delivery_id: DeliveryId) -> Call[WholeDelivery]:
    return Call("GET", _delivery(delivery_id), WholeDelivery)


def redeliver(delivery_id: DeliveryId, reason: str | None = None) -> Call[Delivery]:
    """Not repeated: it could be sent once more than was asked for."""
    body = without_none({"reason": reason})
    return Call("POST", f"{_delivery(delivery_id)}/redeliver", Delivery, body=body, repeatable=False)


def _webhook(webhook_id: WebhookId) -> str:
    return f"{WEBHOOKS}/{named(str(webhook_id))}"


def _delivery(delivery_id: DeliveryId) -> str:
    return f"{API}/deliveries/{named(str(delivery_id))}"
