"""An endpoint or a delivery that the caller may see, and change."""

from uuid import UUID

from litestar.datastructures import State

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import Caller, require_writer
from windlass.services.api.http.errors import Problem
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.db import Pool
from windlass.shared.features.catching_up import CatchUp
from windlass.shared.features.webhooks.fan_out import WEBHOOKS
from windlass.shared.features.webhooks.turn import DELIVERIES
from windlass.shared.store import webhooks
from windlass.shared.store.webhooks import DeliveryRead, WebhookRead


class CatchUpOnWebhooks:
    """Handles pending moves before a read of endpoints or deliveries."""

    def __init__(self, pool: Pool) -> None:
        self._moves = CatchUp(pool, WEBHOOKS)
        self._outcomes = CatchUp(pool, DELIVERIES)

    async def before_read(self) -> None:
        """The outcome of a delivery can disable its endpoint, which is an event for others."""
        for catch_up in (self._moves, self._outcomes, self._moves):
            await catch_up.before_read()


async def visible_webhook(state: State, caller: Caller, webhook_id: UUID) -> WebhookRead:
    """A foreign one is as if it did not exist."""
    await state.catch_up_on_webhooks.before_read()
    row = await webhooks.get(state.pool, webhook_id)
    if row is None or not caller.may_see(row.user_id):
        raise Problem(404, "webhook-not-found", f"there is no webhook {webhook_id}")
    return row


async def changeable_webhook(
    request: Asked, state: State, webhook_id: UUID, action: str, *, reason: str | None = None
) -> WebhookRead:
    """The same, before a change. The audit log gets an operator's change to another user's webhook, and every change
    that has a reason."""
    require_writer(request.user)
    row = await visible_webhook(state, request.user, webhook_id)
    if row.user_id != request.user.user_id or reason is not None:
        await audit(request, f"webhook.{action}", webhook_id, {"owner": row.user_id}, reason=reason)
    return row


async def visible_delivery(state: State, caller: Caller, delivery_id: UUID) -> DeliveryRead:
    """Also one whose webhook was deleted: it says what became of it. A user sees those that tell of its own things: it
    may have been an admin when others were written."""
    await state.catch_up_on_webhooks.before_read()
    row = await webhooks.delivery(state.pool, delivery_id)
    if row is None or not caller.may_see(row.user_id) or (caller.own is not None and row.told_user != caller.own):
        raise Problem(404, "delivery-not-found", f"there is no delivery {delivery_id}")
    return row
