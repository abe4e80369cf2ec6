"""What has happened to a project: its runs, its events page by page, and the same as server-sent events."""

from collections.abc import AsyncGenerator
from typing import Annotated, Any
from uuid import UUID

from litestar import Response, get
from litestar.datastructures import State
from litestar.params import QueryParameter

from windlass.services.api.access.auth import Caller
from windlass.services.api.http.pages import LARGE_ROWS_AT_ONCE, page
from windlass.services.api.projects.documents import (
    counts_document,
    data_of,
    event_document,
    queue_document,
    run_document,
    status_document,
)
from windlass.services.api.projects.handlers import Cursor, Limit, ProjectId
from windlass.services.api.projects.looking_up import visible_project
from windlass.services.api.streams.event_stream import PING, EventStream, retry_hint
from windlass.services.api.streams.handlers import LastEventId
from windlass.services.api.streams.messages import encode
from windlass.services.api.streams.one_task import read_position
from windlass.services.api.tasks.handlers import Asked
from windlass.shared import db
from windlass.shared.store import projects
from windlass.shared.store.projects import EVENT_NAMES, Status
from windlass.shared.store.rows import ProjectEventRow

PAGE_ROWS = 16
"""A change of an item holds the item, which may be large."""


@get("/projects/{project_id:uuid}/runs")
async def list_runs(
    request: Asked, state: State, project_id: ProjectId, cursor: Cursor = None, limit: Limit = 50
) -> Response[dict[str, Any]]:
    """Its runs, newest first; one that was stopped by force has its receipt."""
    await visible_project(state, request.user, project_id)

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await projects.runs(state.pool, project_id, before=position, limit=number)
        return [(row.run_id, run_document(row, request.user)) for row in rows]

    return await page(read, cursor=cursor, limit=limit, at_once=LARGE_ROWS_AT_ONCE)


@get("/projects/{project_id:uuid}/events")
async def list_project_events(
    request: Asked,
    state: State,
    project_id: ProjectId,
    after: Annotated[int, QueryParameter(ge=0, le=2**31 - 1)] = 0,
    limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 200,
) -> Response[dict[str, Any]]:
    """Its whole story, oldest first."""
    await visible_project(state, request.user, project_id)

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await projects.events(state.pool, project_id, after=position, limit=number)
        return [(row.seq, event_document(row, request.user)) for row in rows]

    return await page(read, cursor=after, limit=limit, at_once=LARGE_ROWS_AT_ONCE)


@get("/projects/{project_id:uuid}/queue/stream", media_type="text/event-stream")
async def stream_queue(
    request: Asked,
    state: State,
    project_id: ProjectId,
    after: Annotated[str | None, QueryParameter(description="Go on after this `seq`.")] = None,
    last_event_id: LastEventId = None,
) -> Response[Any]:
    """Everything that happens to the queue: `status`, `run` and `item`. It begins with the present status, or goes on
    after the last event that the client has seen, and lasts until the client leaves."""
    row = await visible_project(state, request.user, project_id)
    seen = last_event_id or after
    begun = None if seen else row
    position = read_position(seen, row.last_seq) if seen else row.last_seq
    return EventStream(
        tell(state, project_id, request.user, position, begun),
        patience_seconds=state.settings.stream_patience_seconds,
        kind="project",
    )


async def tell(
    state: State, project_id: UUID, caller: Caller, after: int, begun: Status | None
) -> AsyncGenerator[bytes, None]:
    """Reads on from the last `seq` told whenever the hub says that there may be news."""
    yield retry_hint()
    if begun is not None:
        yield encode(str(after), "status", status_document(begun, caller))
    with state.hub.subscribe([project_id]) as subscription, state.keyring.stay(caller, subscription.wake) as stay:
        while not (state.hub.closing.is_set() or stay.is_over):
            subscription.clear()
            try:
                rows = await projects.events(state.pool, project_id, after=after, limit=PAGE_ROWS)
                present = await projects.get(state.pool, project_id) if rows else None
                if not await stay.goes_on():
                    return
            except db.AWAY_OR_BUSY:
                yield PING
                await subscription.bear_an_outage()
                continue
            if rows and present is not None:
                yield b"".join(message(row, present, caller) for row in rows)
                after = rows[-1].seq
                continue
            subscription.seen = after
            while not await subscription.news(state.settings.stream_ping_seconds):
                yield PING


def message(row: ProjectEventRow, present: Status, caller: Caller) -> bytes:
    """A change of the queue comes with how many items there are of each kind now."""
    name, data = EVENT_NAMES[row.type], data_of(row, caller)
    if name == "status":
        data = {**queue_document(row.data, caller), "counts": counts_document(present)}
    return encode(str(row.seq), name, {"type": row.type, **data})


HANDLERS = [list_runs, list_project_events, stream_queue]
