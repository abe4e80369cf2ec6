"""The states of endpoints and deliveries, and the events that endpoints subscribe to."""

from enum import StrEnum


class EndpointState(StrEnum):
    """How an endpoint stands; what it is sent waits, held, in every state but the first."""

    ENABLED = "enabled"
    FAILING = "failing"
    """It failed five times in a row: its oldest delivery tries it, the others are held."""
    DISABLED = "disabled"
    """By hand, or after five days of failure."""
    GONE = "gone"
    """It said 410; only a person enables it again."""


class DeliveryState(StrEnum):
    """What has become of a delivery. One that waits is shown as held while its endpoint is the reason."""

    WAITING = "waiting"
    HELD = "held"
    DELIVERED = "delivered"
    FAILED = "failed"


STORED = (DeliveryState.WAITING, DeliveryState.DELIVERED, DeliveryState.FAILED)
"""Whether one is held, its task says."""


class Scope(StrEnum):
    """Of whose things an endpoint hears."""

    OWN = "own"
    ALL = "all"


EVENTS = (
    "task.completed", "task.dead", "task.cancelled", "task.retrying", "approval.requested",
    "project.started", "project.stopped",
    "workflow.completed", "workflow.failed", "workflow.escalated", "workflow.cancelled",
    "provider.paused", "provider.resumed", "provider.breaker-opened", "provider.breaker-closed",
    "schedule.failed", "webhook.disabled", "webhook.test",
)  # fmt: skip
"""What an endpoint can subscribe to; `task.*` takes all of a kind."""

KINDS = tuple(dict.fromkeys(f"{event.partition('.')[0]}.*" for event in EVENTS))
