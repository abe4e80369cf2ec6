"""A project's backlog over REST."""

import re
from typing import Annotated, Any
from uuid import UUID

from litestar import Response, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, QueryParameter

from windlass.services.api.access.auth import require_writer
from windlass.services.api.access.reasons import read_reason
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.pages import LARGE_ROWS_AT_ONCE, page
from windlass.services.api.projects.documents import item_document
from windlass.services.api.projects.handlers import Limit, ProjectId, checked
from windlass.services.api.projects.looking_up import changeable_project, item_not_found, refuse, visible_project
from windlass.services.api.projects.schemas import ItemChange
from windlass.services.api.projects.writing_items import fields_of, new_item, read_items, written
from windlass.services.api.tasks.handlers import Asked
from windlass.shared.features.projects import backlog
from windlass.shared.project_states import ItemState
from windlass.shared.store import projects

PLACE = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,400})?")

ItemId = FromPath[UUID]


@post("/projects/{project_id:uuid}/items", status_code=201)
async def add_items(request: Asked, state: State, project_id: ProjectId) -> dict[str, Any]:
    """Puts items at the end of the backlog, all or none; their payloads are checked now."""
    require_writer(request.user)
    wanted = read_items(await read_json(request))
    project = await changeable_project(request, state, project_id, "add-items")
    checking = {"caller": request.user, "settings": state.settings, "actors": state.registry.actors}
    items = [
        new_item(item.title, written(fields_of(item, state.settings, below), project.defaults, below=below, **checking))
        for below, item in wanted
    ]
    refuse(await backlog.add(state.features, project_id, items), project_id)
    rows = await projects.some_items(state.pool, project_id, [item["item_id"] for item in items])
    return {"items": [item_document(row) for row in rows]}


@get("/projects/{project_id:uuid}/items")
async def list_items(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    project_id: ProjectId,
    item_state: Annotated[list[ItemState] | None, QueryParameter(name="state")] = None,
    cursor: Annotated[str | None, QueryParameter(description="The `next_cursor` of the page before.")] = None,
    limit: Limit = 50,
) -> Response[dict[str, Any]]:
    """The backlog in its order, with what has been run."""
    await visible_project(state, request.user, project_id)
    if cursor is not None and not PLACE.fullmatch(cursor):
        raise field_problem("/cursor", "invalid-request", "it is no `next_cursor` of this list")

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await projects.items(state.pool, project_id, states=item_state, after=position, limit=number)
        return [(row.position, item_document(row)) for row in rows]

    return await page(read, cursor=cursor, limit=limit, at_once=LARGE_ROWS_AT_ONCE)


@get("/projects/{project_id:uuid}/items/{item_id:uuid}")
async def get_item(request: Asked, state: State, project_id: ProjectId, item_id: ItemId) -> dict[str, Any]:
    """One item."""
    await visible_project(state, request.user, project_id)
    return await item_now(state, project_id, item_id)


@patch("/projects/{project_id:uuid}/items/{item_id:uuid}")
async def change_item(request: Asked, state: State, project_id: ProjectId, item_id: ItemId) -> dict[str, Any]:
    """Moves it, or changes its fields. What stands first is what runs, as long as no worker has claimed it."""
    require_writer(request.user)
    wanted = checked(ItemChange, await read_json(request), code="invalid-item")
    if wanted.before is not None and wanted.after is not None:
        raise field_problem("/after", "invalid-item", "give before or after, not both")
    project = await changeable_project(request, state, project_id, "change-item")
    present = await projects.item(state.pool, project_id, item_id)
    if present is None:
        raise item_not_found(project_id, item_id)
    changes: dict[str, Any] = {"title": wanted.title} if "title" in wanted.model_fields_set else {}
    if fields := fields_of(wanted, state.settings):
        given = {name: value for name, value in {**present.given, **fields}.items() if value is not None}
        changes |= written(
            given, project.defaults, caller=request.user, settings=state.settings, actors=state.registry.actors
        )
    refusal = await backlog.change(
        state.features, project_id, item_id, changes, before=wanted.before, after=wanted.after
    )
    refuse(refusal, project_id, item_id)
    return await item_now(state, project_id, item_id)


@delete("/projects/{project_id:uuid}/items/{item_id:uuid}", status_code=204)
async def delete_item(request: Asked, state: State, project_id: ProjectId, item_id: ItemId) -> None:
    """Takes it out of the backlog; its runs and their tasks are kept."""
    await changeable_project(request, state, project_id, "delete-item")
    refuse(await backlog.delete(state.features, project_id, item_id), project_id, item_id)


@post("/projects/{project_id:uuid}/items/{item_id:uuid}/skip", status_code=200)
async def skip_item(request: Asked, state: State, project_id: ProjectId, item_id: ItemId) -> dict[str, Any]:
    """It is passed over until somebody requeues it."""
    require_writer(request.user)
    await changeable_project(request, state, project_id, "skip-item", reason=await read_reason(request))
    refuse(await backlog.skip(state.features, project_id, item_id), project_id, item_id)
    return await item_now(state, project_id, item_id)


@post("/projects/{project_id:uuid}/items/{item_id:uuid}/requeue", status_code=200)
async def requeue_item(request: Asked, state: State, project_id: ProjectId, item_id: ItemId) -> dict[str, Any]:
    """It waits again, where it stands."""
    require_writer(request.user)
    await changeable_project(request, state, project_id, "requeue-item", reason=await read_reason(request))
    refuse(await backlog.requeue(state.features, project_id, item_id), project_id, item_id)
    return await item_now(state, project_id, item_id)


async def item_now(state: State, project_id: UUID, item_id: UUID) -> dict[str, Any]:
    row = await projects.item(state.pool, project_id, item_id)
    if row is None:
        raise item_not_found(project_id, item_id)
    return item_document(row)


HANDLERS = [add_items, list_items, get_item, change_item, delete_item, skip_item, requeue_item]
