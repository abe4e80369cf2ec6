"""Webhooks as they go out, for the OpenAPI document."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import Field

from windlass.services.api.reference.documents.tasks import Document
from windlass.shared.webhook_states import DeliveryState, EndpointState


class WebhookDocument(Document):
    """An endpoint, and how it is."""

    webhook_id: UUID
    user_id: str
    url: str
    events: list[str]
    filter: dict[str, str]
    scope: Literal["own", "all"]
    description: str | None
    state: EndpointState
    reason: Annotated[str | None, Field(description="Why it is not enabled.")]
    failing_since: datetime | None
    last_success_at: datetime | None
    held: Annotated[
        int,
        Field(
            description="How many deliveries wait until it is enabled again. A disabled one holds the newest "
            "`WINDLASS_WEBHOOK_HELD_MOST` for `WINDLASS_WEBHOOK_HELD_DAYS`; others are given up."
        ),
    ]
    previous_until: Annotated[
        datetime | None, Field(description="Until when the secret before the last one signs too.")
    ]
    created_at: datetime
    updated_at: datetime


class SecretWebhookDocument(WebhookDocument):
    """With its secret, which is shown here alone."""

    secret: Annotated[str, Field(description="`whsec_…`, for the libraries of Standard Webhooks.")]


class WebhookPage(Document):
    """Endpoints, newest first."""

    items: list[WebhookDocument]
    next_cursor: UUID | None = None


class DeliveryDocument(Document):
    """Something that one endpoint is told."""

    delivery_id: Annotated[UUID, Field(description="The `webhook-id` of every try.")]
    webhook_id: UUID
    type: Annotated[str, Field(description="As `task.completed`.")]
    subject: Annotated[str, Field(description="The id of what it is about; of a provider its name.")]
    life: Annotated[int, Field(description="Of a task: which of its lives.")]
    state: DeliveryState
    reason: str | None
    task_id: Annotated[UUID, Field(description="The task that carries it.")]
    attempts: int
    last_status: int | None
    created_at: datetime
    delivered_at: datetime | None
    next_at: Annotated[datetime | None, Field(description="When it is tried next.")]


class DeliveryPage(Document):
    """Deliveries, newest first."""

    items: list[DeliveryDocument]
    next_cursor: UUID | None = None


class TryDocument(Document):
    """One try, and what was answered."""

    at: datetime
    attempt: int
    delivered: bool
    status_code: int | None
    elapsed_ms: int | None
    error: str | None
    excerpt: Annotated[str | None, Field(description="The first kilobyte of the answer, for the owner alone.")]


class WholeDeliveryDocument(DeliveryDocument):
    """With what was sent, and every try."""

    body: dict[str, Any]
    tries: list[TryDocument]
