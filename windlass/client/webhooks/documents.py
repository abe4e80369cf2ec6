"""An endpoint and its deliveries, as the API tells them."""

from datetime import datetime
from typing import Any, Literal

import msgspec

from windlass.client.task import Document

WebhookState = Literal["enabled", "failing", "disabled", "gone"]
DeliveryState = Literal["waiting", "held", "delivered", "failed"]
Scope = Literal["own", "all"]
Replay = Literal["held", "none"]


class Webhook(Document, frozen=True, kw_only=True):
    """An endpoint, and how it is; `reason` says why it is not enabled."""

    webhook_id: str
    url: str
    state: WebhookState
    user_id: str = ""
    events: tuple[str, ...] = ()
    filter: dict[str, str] = msgspec.field(default_factory=dict)
    scope: Scope = "own"
    description: str | None = None
    reason: str | None = None
    failing_since: datetime | None = None
    last_success_at: datetime | None = None
    held: int = 0
    """How many deliveries wait until it is enabled again."""
    previous_until: datetime | None = None
    """Until when the secret before the last one signs too."""
    created_at: datetime | None = None
    updated_at: datetime | None = None


class SecretWebhook(Webhook, frozen=True, kw_only=True):
    """With its secret (`whsec_…`), which is told this once."""

    secret: str


class Delivery(Document, frozen=True, kw_only=True):
    """Something that one endpoint is told; its id is the `webhook-id` of every try."""

    delivery_id: str
    webhook_id: str
    type: str
    state: DeliveryState
    subject: str = ""
    """The id of what it is about; of a provider its name."""
    life: int = 1
    reason: str | None = None
    task_id: str = ""
    """The task that carries it."""
    attempts: int = 0
    last_status: int | None = None
    created_at: datetime | None = None
    delivered_at: datetime | None = None
    next_at: datetime | None = None


class DeliveryTry(Document, frozen=True, kw_only=True):
    """One try, and what was answered; the beginning of the answer is for the endpoint's owner alone."""

    at: datetime
    attempt: int
    delivered: bool
    status_code: int | None = None
    elapsed_ms: int | None = None
    error: str | None = None
    excerpt: str | None = None


class WholeDelivery(Delivery, frozen=True, kw_only=True):
    """With what is sent, and every try."""

    body: dict[str, Any] = msgspec.field(default_factory=dict)
    tries: tuple[DeliveryTry, ...] = ()
