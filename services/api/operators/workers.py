"""Who runs tasks at the moment, and who did."""

from typing import Any

from litestar import get
from litestar.datastructures import State

from windlass.services.api.access.auth import require_overview
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.store.operating import workers


@get("/workers")
async def list_workers(request: Asked, state: State) -> dict[str, Any]:
    """Hosts, processes and how much they carry for everybody: not for users."""
    require_overview(request.user)
    return {"items": [dict(row) for row in await workers.newest(state.pool)]}


HANDLERS = [list_workers]
