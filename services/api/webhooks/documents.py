"""Endpoints and deliveries as they go out: never with a secret, and what an endpoint answered for its owner alone."""

import json
from collections.abc import Sequence
from typing import Any

from windlass.services.api.access.auth import Caller
from windlass.shared.store.rows import DeliveryTryRow
from windlass.shared.store.webhooks import DeliveryRead, WebhookRead

OF_A_WEBHOOK = (
    "webhook_id", "user_id", "url", "events", "filter", "scope", "description", "state", "reason", "failing_since",
    "last_success_at", "held", "previous_until", "created_at", "updated_at",
)  # fmt: skip
OF_A_DELIVERY = (
    "delivery_id", "webhook_id", "type", "subject", "life", "reason", "task_id", "attempts", "last_status",
    "created_at", "delivered_at", "next_at",
)  # fmt: skip


def webhook_document(row: WebhookRead) -> dict[str, Any]:
    return {name: row[name] for name in OF_A_WEBHOOK}


def delivery_document(row: DeliveryRead) -> dict[str, Any]:
    return {**{name: row[name] for name in OF_A_DELIVERY}, "state": row.shown_state}


def whole_delivery(row: DeliveryRead, tries: Sequence[DeliveryTryRow], caller: Caller) -> dict[str, Any]:
    return {
        **delivery_document(row),
        "body": json.loads(row.body),
        "tries": [try_document(each, is_owner=caller.user_id == row.user_id) for each in tries],
    }


def try_document(row: DeliveryTryRow, *, is_owner: bool) -> dict[str, Any]:
    names = ("at", "attempt", "delivered", "status_code", "elapsed_ms", "error")
    return {**{name: row[name] for name in names}, "excerpt": row.excerpt if is_owner else None}
