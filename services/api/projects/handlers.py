"""Projects over REST: made, listed, read, changed and archived."""

import hashlib
from typing import Annotated, Any
from uuid import UUID

import msgspec
from litestar import Response, delete, get, patch, post
from litestar.datastructures import State
from litestar.params import FromPath, QueryParameter
from pydantic import BaseModel, ValidationError
from uuid_utils.compat import uuid7

from windlass.services.api.access.audit import audit
from windlass.services.api.access.auth import require_writer
from windlass.services.api.access.reasons import AskedReason
from windlass.services.api.http.bodies import field_problem, read_json
from windlass.services.api.http.errors import Problem, invalid_fields
from windlass.services.api.http.pages import LARGE_ROWS_AT_ONCE, page
from windlass.services.api.projects.documents import project_document
from windlass.services.api.projects.looking_up import changeable_project, refuse, visible_project
from windlass.services.api.projects.schemas import NewProject, ProjectChange
from windlass.services.api.tasks.handlers import REPLAYED, Asked, IdempotencyKey, refusals_explained
from windlass.services.api.tasks.submission import check_idempotency_key
from windlass.shared.features.projects import operations
from windlass.shared.features.projects.operations import NewProject as StoredProject
from windlass.shared.project_states import QueueState
from windlass.shared.scrubbing import withhold
from windlass.shared.store import projects

Limit = Annotated[int, QueryParameter(ge=1, le=500, description="How many at most.")]
Cursor = Annotated[UUID | None, QueryParameter(description="The `next_cursor` of the page before.")]
ProjectId = FromPath[UUID]

_canonical = msgspec.json.Encoder(order="sorted")


@post("/projects", status_code=201)
async def create_project(
    request: Asked, state: State, idempotency_key: IdempotencyKey = None
) -> Response[dict[str, Any]]:
    """Makes a project with an empty backlog."""
    require_writer(request.user)
    check_idempotency_key(idempotency_key)
    wanted = checked(NewProject, await read_json(request))
    if wanted.user_id is not None and not request.user.is_admin:
        raise field_problem("/user_id", "forbidden", "only an admin makes projects for somebody else", status=403)
    owner = wanted.user_id or request.user.user_id
    project_id = uuid7()
    if owner != request.user.user_id:
        await audit(request, "project.create", project_id, {"owner": owner})
    said = wanted.model_dump(mode="json", exclude_unset=True)
    with refusals_explained([]):
        created = await operations.create(
            state.pool,
            StoredProject(
                task_id=project_id,
                user_id=owner,
                name=wanted.name,
                defaults=withhold(said.get("defaults", {})),
                on_failure=wanted.on_failure,
                idempotency_key=idempotency_key,
                idempotency_ttl_seconds=state.settings.defaults.idempotency_ttl_seconds,
                body_hash=hashlib.sha256(_canonical.encode({"project": said})).hexdigest(),
            ),
        )
    document = project_document(await visible_project(state, request.user, created.project_id), request.user)
    headers = {"Location": f"/api/v1/projects/{created.project_id}"}
    if created.deduplicated:
        document["deduplicated"] = True
        headers |= REPLAYED
    return Response(document, status_code=200 if created.deduplicated else 201, headers=headers)


@get("/projects")
async def list_projects(  # noqa: PLR0917 - Litestar passes them by name
    request: Asked,
    state: State,
    queue_state: Annotated[list[QueueState] | None, QueryParameter(name="state")] = None,
    archived: Annotated[bool, QueryParameter(description="Those that are archived, instead of the others.")] = False,  # noqa: FBT002
    q: Annotated[str | None, QueryParameter(max_length=200, description="A part of the name.")] = None,
    cursor: Cursor = None,
    limit: Limit = 50,
) -> Response[dict[str, Any]]:
    """Projects, newest first, each with its queue."""
    if "\0" in (q or ""):
        raise Problem(422, "unstorable-value", "a value cannot be compared: it contains a NUL character")
    await state.catch_up_on_projects.before_read()

    async def read(position: Any, number: int) -> list[tuple[Any, Any]]:
        rows = await projects.newest(
            state.pool,
            owner=request.user.own,
            states=queue_state,
            archived=archived,
            q=q,
            before=position,
            limit=number,
        )
        return [(row.project_id, project_document(row, request.user)) for row in rows]

    return await page(read, cursor=cursor, limit=limit, at_once=LARGE_ROWS_AT_ONCE)


@get("/projects/{project_id:uuid}")
async def get_project(request: Asked, state: State, project_id: ProjectId) -> dict[str, Any]:
    """One project, with its queue."""
    return project_document(await visible_project(state, request.user, project_id), request.user)


@patch("/projects/{project_id:uuid}")
async def change_project(request: Asked, state: State, project_id: ProjectId) -> dict[str, Any]:
    """Its name, its defaults, or what it does on failure."""
    require_writer(request.user)
    wanted = checked(ProjectChange, await read_json(request))
    await changeable_project(request, state, project_id, "change")
    said = wanted.model_dump(mode="json", exclude_unset=True)
    if "defaults" in said:
        said["defaults"] = withhold(said["defaults"] or {})
    if not await operations.alter(state.features, project_id, said):
        refuse("project-archived", project_id)
    return await get_document(request, state, project_id)


@delete("/projects/{project_id:uuid}", status_code=200)
async def archive_project(
    request: Asked, state: State, project_id: ProjectId, reason: AskedReason = None
) -> dict[str, Any]:
    """Archives it: it is kept, and read, and nothing else. Again is fine."""
    await changeable_project(request, state, project_id, "archive", reason=reason)
    refuse(await operations.archive(state.features, project_id), project_id)
    return await get_document(request, state, project_id)


async def get_document(request: Asked, state: State, project_id: UUID) -> dict[str, Any]:
    return project_document(await visible_project(state, request.user, project_id), request.user)


def checked(model: type[BaseModel], body: Any, *, code: str = "invalid-project") -> Any:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise invalid_fields(error, code, model) from error


HANDLERS = [create_project, list_projects, get_project, change_project, archive_project]
