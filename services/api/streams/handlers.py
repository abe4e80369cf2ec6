"""Histories over REST: one task's page by page or as a stream, and many tasks' on one connection."""

from typing import Annotated, Any, Literal
from uuid import UUID

from litestar import Response, get, post
from litestar.datastructures import State
from litestar.openapi import ResponseSpec
from litestar.params import FromPath, FromQuery, HeaderParameter, QueryParameter

from windlass.services.api.access.audit import audit_foreign_task
from windlass.services.api.http.errors import Problem
from windlass.services.api.streams.many_tasks import stream_many
from windlass.services.api.streams.one_task import stream_task
from windlass.services.api.tasks.handlers import Asked, visible_task
from windlass.services.api.tasks.schemas import event_document
from windlass.shared.store.reading import events
from windlass.shared.store.reading.commit_order import Wanted

PAGE_BYTES = 2_000_000

LastEventId = Annotated[
    str | None,
    HeaderParameter(name="Last-Event-ID", description="The id of the last event seen; wins over `after`."),
]


@get("/tasks/{task_id:uuid}/events")
async def list_events(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    task_id: FromPath[UUID],
    after: Annotated[int, QueryParameter(ge=0, le=2**31 - 1)] = 0,
    event_type: Annotated[list[str] | None, QueryParameter(name="type")] = None,
    limit: Annotated[int, QueryParameter(ge=1, le=1000)] = 200,
) -> dict[str, Any]:
    """The task's whole story, oldest first; a page of very large events, or one that ends where the story goes on after
    a restore, may hold fewer than `limit`."""
    task = await visible_task(state.pool, request.user, task_id)
    rows = await events.page(
        state.pool, task_id, after=after, most_rows=limit + 1, most_bytes=PAGE_BYTES, types=event_type
    )
    document: dict[str, Any] = {"items": [event_document(row, request.user) for row in rows[:limit]]}
    is_cut = len(rows) > limit or (rows and rows[-1].bytes >= PAGE_BYTES)
    if is_cut or (rows and event_type is None and rows[-1].seq < task.last_seq):
        document["next_cursor"] = str(rows[:limit][-1].seq)
    return document


@get(
    "/tasks/{task_id:uuid}/stream",
    stream_token=True,
    media_type="text/event-stream",
    responses={204: ResponseSpec(None, description="The task has ended, and the client has seen everything.")},
)
async def stream(  # noqa: PLR0917
    request: Asked,
    state: State,
    task_id: FromPath[UUID],
    after: Annotated[str | None, QueryParameter(description="Go on after this `seq`.")] = None,
    token: Annotated[str | None, QueryParameter(description="A stream token, instead of a key.")] = None,  # noqa: ARG001
    last_event_id: LastEventId = None,
) -> Response[Any]:
    """The same story as server-sent events, from the beginning or from the last one that the client has seen."""
    # An EventSource reconnects to the URL that it was given: the header is the later word.
    return await stream_task(state, task_id, request.user, last_event_id or after)


@post("/tasks/{task_id:uuid}/stream-token", status_code=201)
async def issue_stream_token(request: Asked, state: State, task_id: FromPath[UUID]) -> dict[str, Any]:
    """A token for this one stream, as `?token=`, while the task lives and five minutes more: an EventSource cannot send
    a key."""
    task = await visible_task(state.pool, request.user, task_id)
    await audit_foreign_task(request, "task.stream-token", task)
    token, expires_at = await state.stream_tokens.issue(task_id, request.user.key_id)
    # Not from the request's Host header, which is whatever its sender wrote.
    url = f"{state.settings.address}/api/v1/tasks/{task_id}/stream?token={token}"
    return {"token": token, "expires_at": expires_at, "url": url}


@get("/stream", media_type="text/event-stream")
async def stream_of_many(  # noqa: PLR0917
    request: Asked,
    state: State,
    task_id: FromQuery[list[UUID] | None] = None,
    project_id: FromQuery[str | None] = None,
    workflow_id: FromQuery[str | None] = None,
    user_id: FromQuery[str | None] = None,
    only: Annotated[Literal["state"] | None, QueryParameter(description="`state`: for lists.")] = None,
    after: Annotated[str | None, QueryParameter(description="Go on after the event with this id.")] = None,
    last_event_id: LastEventId = None,
) -> Response[Any]:
    """Everything that happens to many tasks: those of the caller, or all for who may see all, as far as they match.

    Each event's data adds `task_id` and `seq`. The stream starts now and goes on until the client leaves; an id brings
    a client that comes back to where it was.

    With `only=state` it is what a list needs: every change of state, each task's progress once a second at most, no
    output and no steps; where more than 100 events came in a second, one `resync` instead says: load the list again.
    A client that comes back may hear again what was told in the second before.
    """
    if "\0" in f"{project_id}{workflow_id}{user_id}":
        raise Problem(422, "unstorable-value", "a value cannot be compared: it contains a NUL character")
    wanted = Wanted(
        task_ids=None if task_id is None else frozenset(task_id),
        project_id=project_id,
        workflow_id=workflow_id,
        user_id=user_id,
        visible_to=None if request.user.sees_everything else request.user.user_id,
        only_state=only == "state",
    )
    return await stream_many(state, request.user, wanted, last_event_id or after)


HANDLERS = [list_events, stream, issue_stream_token, stream_of_many]
