"""A task's history over REST: page by page, or as a stream."""

from typing import Annotated, Any
from uuid import UUID

from litestar import Response, get
from litestar.datastructures import State
from litestar.params import HeaderParameter, Parameter, QueryParameter

from services.api.schemas import event_document
from services.api.stream import stream_task
from services.api.tasks import Asked, visible_task
from shared.store import events


@get("/tasks/{task_id:uuid}/events")
async def list_events(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    task_id: UUID,
    after: Annotated[int, Parameter(ge=0)] = 0,
    event_type: Annotated[list[str] | None, QueryParameter(name="type")] = None,
    limit: Annotated[int, Parameter(ge=1, le=1000)] = 200,
) -> dict[str, Any]:
    """The task's whole story, oldest first."""
    await visible_task(state.pool, request.user, task_id)
    rows = await events.page(state.pool, task_id, after=after, limit=limit + 1, types=event_type)
    document: dict[str, Any] = {"items": [event_document(row, request.user) for row in rows[:limit]]}
    if len(rows) > limit:
        document["next_cursor"] = str(rows[limit - 1]["seq"])
    return document


@get("/tasks/{task_id:uuid}/stream")
async def stream(
    request: Asked,
    state: State,
    task_id: UUID,
    after: str | None = None,
    last_event_id: Annotated[str | None, HeaderParameter(name="Last-Event-ID")] = None,
) -> Response[Any]:
    """The same story as server-sent events, from the beginning or from the last one that the client has seen."""
    row = await visible_task(state.pool, request.user, task_id)
    return await stream_task(state, row, request.user, last_event_id or after)


HANDLERS = [list_events, stream]
