"""Tries to deliver webhooks, counted by the workers that make them."""

from windlass.shared.metrics.declaring import ACTORS, counter, histogram

DELIVERIES = counter(
    "windlass_webhook_tries_total",
    "Tries to deliver a webhook; `outcome` is delivered, refused (another answer than 2xx), unreachable or forbidden "
    "(an address that is not spoken to)",
    ["outcome"],
    of=[ACTORS],
)
DELIVERY_SECONDS = histogram(
    "windlass_webhook_try_seconds",
    "How long an endpoint took to answer, or not to",
    ["outcome"],
    buckets=(0.01, 0.03, 0.1, 0.3, 1, 3, 5, 10, 15),
    of=[ACTORS],
)
