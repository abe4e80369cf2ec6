"""Webhooks: endpoints and what they are told, one function per intent, each a single call that Postgres does whole."""

from windlass.shared.store.webhooks.carrying import Turn, begin
from windlass.shared.store.webhooks.endpoints import (
    CHANNEL,
    NewWebhook,
    alter,
    create,
    delete,
    disable,
    enable,
    give_up_held,
    look_after,
    recheck,
    rotate,
    test,
)
from windlass.shared.store.webhooks.reading import (
    DeliveryRead,
    WebhookRead,
    count_endpoints,
    deliveries,
    delivery,
    get,
    newest,
    redeliver,
    tries,
)

__all__ = [
    "CHANNEL",
    "DeliveryRead",
    "NewWebhook",
    "Turn",
    "WebhookRead",
    "alter",
    "begin",
    "count_endpoints",
    "create",
    "delete",
    "deliveries",
    "delivery",
    "disable",
    "enable",
    "get",
    "give_up_held",
    "look_after",
    "newest",
    "recheck",
    "redeliver",
    "rotate",
    "test",
    "tries",
]  # fmt: skip
