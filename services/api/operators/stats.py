"""Daily figures per actor, as the janitor keeps them."""

from typing import Annotated, Any

from litestar import get
from litestar.datastructures import State
from litestar.params import QueryParameter

from windlass.services.api.access.auth import require_overview
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.store.operating import statistics


@get("/stats")
async def list_stats(
    request: Asked, state: State, days: Annotated[int, QueryParameter(ge=1, le=366)] = 30
) -> dict[str, Any]:
    """Created, completed, failed, average latency, error rate and heartbeat delay, by day and actor."""
    require_overview(request.user)
    return {"items": [dict(row) for row in await statistics.newest(state.pool, days=days)]}


HANDLERS = [list_stats]
