"""What can be said of a webhook."""

from collections.abc import Sequence
from typing import TypedDict
from uuid import UUID

from windlass.client.webhooks.documents import Scope

WebhookId = str | UUID
DeliveryId = str | UUID


class WebhookFilter(TypedDict, total=False):
    """Only what is of these, all at once."""

    project_id: str
    workflow_id: str
    actor: str
    tag: str


class WebhookChange(TypedDict, total=False):
    """What waits is sent to the new url, and given up where its event is subscribed no more."""

    url: str
    events: Sequence[str]
    filter: WebhookFilter
    scope: Scope
    description: str | None
    reason: str
