"""What has become of deliveries: listed, read whole with every try, and sent again."""

from typing import Annotated, Any
from uuid import UUID

from litestar import Response, get, post
from litestar.datastructures import State
from litestar.params import FromPath, QueryParameter

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import require_writer
from windlass.services.api.access.reasons import read_reason
from windlass.services.api.http.errors import Problem
from windlass.services.api.http.pages import LARGE_ROWS_AT_ONCE, page
from windlass.services.api.projects.handlers import Cursor, Limit
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.webhooks.documents import delivery_document, whole_delivery
from windlass.services.api.webhooks.looking_up import visible_delivery, visible_webhook
from windlass.shared.features.webhooks import endpoints
from windlass.shared.store import webhooks
from windlass.shared.webhook_states import DeliveryState

REFUSALS = {
    "webhook-deleted": "its webhook was deleted",
    "webhook-disabled": "its webhook is disabled; enable it first",
    "delivery-under-way": "a worker is just trying it; wait for the end of that",
}


@get("/webhooks/{webhook_id:uuid}/deliveries")
async def list_deliveries(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    webhook_id: FromPath[UUID],
    delivery_state: Annotated[DeliveryState | None, QueryParameter(name="state")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[dict[str, Any]]:
    """What an endpoint was told, or is to be, newest first."""
    await visible_webhook(state, request.user, webhook_id)

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await webhooks.deliveries(
            state.pool, webhook_id, told_user=request.user.own, state=delivery_state, before=position, limit=number
        )
        return [(row.delivery_id, delivery_document(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit, at_once=LARGE_ROWS_AT_ONCE)


@get("/deliveries/{delivery_id:uuid}")
async def get_delivery(request: Asked, state: State, delivery_id: FromPath[UUID]) -> dict[str, Any]:
    """One delivery, with its body and every try. What the endpoint answered is for its owner alone."""
    row = await visible_delivery(state, request.user, delivery_id)
    return whole_delivery(row, await webhooks.tries(state.pool, delivery_id), request.user)


@post("/deliveries/{delivery_id:uuid}/redeliver", status_code=202)
async def redeliver(request: Asked, state: State, delivery_id: FromPath[UUID]) -> dict[str, Any]:
    """Sends it once more, now, under the same `webhook-id`."""
    require_writer(request.user)
    reason = await read_reason(request)
    row = await visible_delivery(state, request.user, delivery_id)
    if row.user_id != request.user.user_id or reason is not None:
        await audit(request, "delivery.redeliver", delivery_id, {"owner": row.user_id}, reason=reason)
    refusal = await endpoints.redeliver(state.features, delivery_id)
    if refusal is not None:
        raise Problem(409, refusal, REFUSALS[refusal])
    return delivery_document(await visible_delivery(state, request.user, delivery_id))


HANDLERS = [list_deliveries, get_delivery, redeliver]
