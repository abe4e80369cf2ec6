"""Webhooks as they are read. What changes them is in `shared/features/webhooks`."""

from windlass.shared.store.webhooks.reading import (
    DeliveryRead,
    WebhookRead,
    count_endpoints,
    deliveries,
    delivery,
    get,
    newest,
    tries,
)

CHANNEL = "windlass_endpoints"
"""Wakes the janitor, which looks for endpoints whose probe is due."""

__all__ = [
    "CHANNEL",
    "DeliveryRead", "WebhookRead",
    "count_endpoints", "deliveries", "delivery", "get", "newest", "tries",
]  # fmt: skip
