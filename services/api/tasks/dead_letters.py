"""The dead letters: what died, of what, and its way back."""

from typing import Annotated, Any, Literal

from litestar import Response, get, post
from litestar.datastructures import State
from litestar.params import QueryParameter
from pydantic import Field

from windlass.services.api.access.auth import require_writer
from windlass.services.api.tasks.bulk import Change, read, start
from windlass.services.api.tasks.handlers import Asked
from windlass.services.api.tasks.listing import FILTERED, Cursor, Limit, Wanted, page_of_tasks
from windlass.shared.store.reading import dead_letters
from windlass.shared.store.reading.dead_letters import only_dead
from windlass.shared.store.tasks import bulk

GroupBy = Annotated[
    Literal["error"] | None,
    QueryParameter(description="`error`: kinds of errors instead of tasks, most frequent first."),
]


class Revival(Change):
    """`POST /queues/dlq/revive`."""

    canary: Annotated[int, Field(ge=1, le=bulk.CHUNK, strict=True)] | None = None


@get("/queues/dlq", dependencies=FILTERED)
async def list_dead_letters(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked, state: State, wanted: Wanted, cursor: Cursor = None, limit: Limit = 50, group_by: GroupBy = None
) -> Response[dict[str, Any]]:
    """Dead tasks with their payloads and every attempt's error, newest first; or the kinds of errors among them."""
    if group_by is not None:
        rows = await dead_letters.group_by_error(state.lists, wanted, owner=request.user.own, limit=limit)
        return Response({"items": [dict(row) for row in rows]})
    return await page_of_tasks(state, request.user, only_dead(wanted), cursor=cursor, limit=limit, full=True)


@post("/queues/dlq/revive", status_code=202)
async def revive_dead_letters(request: Asked, state: State) -> Response[dict[str, Any]]:
    """Revives every dead task that a filter means; with `canary: n` the rest only when the first n have completed."""
    require_writer(request.user)
    wanted = await read(request, Revival)
    return await start(request, state, wanted, "retry", only_dead(wanted.filter), canary=wanted.canary)


HANDLERS = [list_dead_letters, revive_dead_letters]
